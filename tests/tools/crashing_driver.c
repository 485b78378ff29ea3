/* A Vulkan driver that crashes as soon as the loader asks it anything. */
#include <signal.h>
#include <stdint.h>

int32_t vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version);

int32_t vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version)
{
    (void)version;
    return raise(SIGSEGV);
}
