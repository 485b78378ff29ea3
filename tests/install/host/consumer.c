/* A host that uses Vulkan itself, beside vkattn: each must keep working while the other does. */
#include <stdio.h>
#include <string.h>
#include <vkattn/vkattn.h>
#include <vulkan/vulkan.h>

int main(void)
{
    uint32_t devices = 0, loader_version = 0;
    vka_layer_desc layer = {.struct_size = sizeof(layer), .hidden_size = 4096, .heads = 32, .kv_heads = 8};
    vka_verdict verdict;
    vka_error error;

    if (strcmp(vka_version(), VKA_VERSION_STRING) != 0 || vka_layer_desc_resolve(&layer, NULL) != VKA_OK)
        return 1;
    if (vka_layout_judge(&layer, (vka_grid){.tp = 16}, VKA_KV_REPLICATE, &verdict, NULL) != VKA_OK)
        return 2;
    if (vka_device_list(NULL, NULL, 0, &devices, &error) != VKA_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 3;
    }
    if (vkEnumerateInstanceVersion(&loader_version) != VK_SUCCESS || loader_version < VK_API_VERSION_1_2)
        return 4;
    printf("vkattn %s, %u devices, %u replicas of each KV head\n", vka_version(), devices, verdict.replicas);
    return devices > 0 && verdict.replicas == 2 ? 0 : 5;
}
