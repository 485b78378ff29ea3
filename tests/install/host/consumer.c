/* A host that uses vkattn and Vulkan itself, linked against both. */
#include <stdio.h>
#include <string.h>
#include <vkattn/vkattn.h>
#include <vulkan/vulkan.h>

int main(void)
{
    uint32_t loader_version = 0;
    vka_layer_desc layer = {.struct_size = sizeof(layer), .hidden_size = 4096, .heads = 32, .kv_heads = 8};
    vka_verdict verdict;
    if (vkEnumerateInstanceVersion(&loader_version) != VK_SUCCESS || loader_version < VK_API_VERSION_1_2)
        return 1;
    if (strcmp(vka_version(), VKA_VERSION_STRING) != 0 || vka_layer_desc_resolve(&layer, NULL) != VKA_OK)
        return 2;
    if (vka_layout_judge(&layer, (vka_grid){.tp = 16}, VKA_KV_REPLICATE, &verdict, NULL) != VKA_OK)
        return 3;
    printf("vkattn %s, replicas %u\n", vka_version(), verdict.replicas);
    return verdict.replicas == 2 ? 0 : 4;
}
