/* The instance: finding the loader, the validation layer, and what to tell a machine without Vulkan. */
#include "vk/instance.h"

#include <string.h>

#include "base/error.h"

#define VALIDATION_LAYER "VK_LAYER_KHRONOS_validation"

static const char no_driver[] =
    "no Vulkan device: install the Vulkan driver of your GPU, or a software device "
    "(Debian, Ubuntu: apt-get install libvulkan1 mesa-vulkan-drivers; Fedora: dnf install vulkan-loader "
    "mesa-vulkan-drivers)";

static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                 VkDebugUtilsMessageTypeFlagsEXT types,
                                                 const VkDebugUtilsMessengerCallbackDataEXT *data, void *user)
{
    (void)severity;
    (void)types;
    vka_log_print(user, VKA_LOG_ERROR, "validation: %s", data->pMessage);
    return VK_FALSE;
}

/* The loader's and drivers' own chatter (type GENERAL) is left out: it is no finding about our calls. */
static VkDebugUtilsMessengerCreateInfoEXT messenger_info(gpu_instance *instance)
{
    return (VkDebugUtilsMessengerCreateInfoEXT){
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity =
            VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
        .pfnUserCallback = on_message,
        .pUserData = &instance->log,
    };
}

static vka_status has_layer(const gpu_instance *instance, const char *name, bool *found, vka_error *error)
{
    VkLayerProperties *layers = NULL;
    uint32_t count = 0;
    VkResult result = instance->fn.EnumerateInstanceLayerProperties(&count, NULL);

    if (result == VK_SUCCESS && count > 0) {
        layers = vka_alloc(&instance->allocator, count, sizeof(*layers));
        result = layers ? instance->fn.EnumerateInstanceLayerProperties(&count, layers) : VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    *found = false;
    for (uint32_t i = 0; i < count && result >= VK_SUCCESS && !*found; i++)
        *found = strcmp(layers[i].layerName, name) == 0;
    vka_free(&instance->allocator, layers);
    return result >= VK_SUCCESS ? VKA_OK : vka_fail_vk(error, result, -1, "cannot list Vulkan's layers");
}

/* `layer`: NULL for those of the loader and the drivers. */
static vka_status has_extension(const gpu_instance *instance, const char *layer, const char *name, bool *found,
                                vka_error *error)
{
    VkExtensionProperties *list = NULL;
    uint32_t count = 0;
    VkResult result = instance->fn.EnumerateInstanceExtensionProperties(layer, &count, NULL);

    if (result == VK_SUCCESS && count > 0) {
        list = vka_alloc(&instance->allocator, count, sizeof(*list));
        result =
            list ? instance->fn.EnumerateInstanceExtensionProperties(layer, &count, list) : VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    *found = false;
    for (uint32_t i = 0; i < count && result >= VK_SUCCESS && !*found; i++)
        *found = strcmp(list[i].extensionName, name) == 0;
    vka_free(&instance->allocator, list);
    return result >= VK_SUCCESS ? VKA_OK : vka_fail_vk(error, result, -1, "cannot list Vulkan's extensions");
}

/* What of the loader and of the validation layer can be used. */
typedef struct findings {
    bool portability, layer, features;
} findings;

static vka_status look_around(const gpu_instance *instance, bool validation, findings *out, vka_error *error)
{
    vka_status status =
        has_extension(instance, NULL, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME, &out->portability, error);

    if (status == VKA_OK && validation)
        status = has_layer(instance, VALIDATION_LAYER, &out->layer, error);
    if (status == VKA_OK && validation && !out->layer)
        status = vka_fail(error, VKA_ERR_UNSUPPORTED,
                          "validation was asked for, but " VALIDATION_LAYER " is not installed (Debian, Ubuntu: "
                          "apt-get install vulkan-validationlayers)");
    if (status == VKA_OK && validation)
        status =
            has_extension(instance, VALIDATION_LAYER, VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME, &out->features, error);
    return status;
}

static vka_status find_loader(gpu_instance *instance, const vka_context_params *params, vka_get_proc_fn *get,
                              vka_error *error)
{
    static const char *const names[] = {"libvulkan.so.1", "libvulkan.so", NULL};
    const char *missing;
    uint32_t version = 0;

    *get = params->get_instance_proc;
    if (!*get && vka_library_open(&instance->library, names))
        *get = (vka_get_proc_fn)vka_library_function(&instance->library, "vkGetInstanceProcAddr");
    if (!*get)
        return vka_fail(error, VKA_ERR_NO_DEVICE, "%s (the loader, libvulkan.so.1, is missing too)", no_driver);
    missing = gpu_load_global(&instance->fn, *get);
    if (missing || instance->fn.EnumerateInstanceVersion(&version) != VK_SUCCESS || version < GPU_API_VERSION)
        return vka_fail(error, VKA_ERR_NO_DEVICE,
                        "the Vulkan loader is too old: Vulkan 1.2 is needed, this one has %u.%u; update libvulkan1",
                        VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version));
    return VKA_OK;
}

static vka_status create_handle(gpu_instance *instance, bool validation, vka_error *error)
{
    VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_info(instance);
    const VkValidationFeatureEnableEXT enables[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
    VkValidationFeaturesEXT features = {
        .sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
        .pNext = &messenger,
        .enabledValidationFeatureCount = 1,
        .pEnabledValidationFeatures = enables,
    };
    VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .pEngineName = "vkattn",
        .apiVersion = GPU_API_VERSION,
    };
    const char *layers[] = {VALIDATION_LAYER};
    const char *extensions[3];
    VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pApplicationInfo = &application,
        .ppEnabledLayerNames = layers,
        .ppEnabledExtensionNames = extensions,
    };
    findings found = {0};
    vka_status status;
    VkResult result;

    status = look_around(instance, validation, &found, error);
    if (status != VKA_OK)
        return status;
    if (found.portability) {
        info.flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
        extensions[info.enabledExtensionCount++] = VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME;
    }
    if (validation) {
        info.enabledLayerCount = 1;
        info.pNext = &features;
        extensions[info.enabledExtensionCount++] = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
        if (found.features)
            extensions[info.enabledExtensionCount++] = VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME;
    }
    result = instance->fn.CreateInstance(&info, NULL, &instance->handle);
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
        return vka_fail(error, VKA_ERR_NO_DEVICE, "%s", no_driver);
    if (result != VK_SUCCESS) {
        instance->handle = VK_NULL_HANDLE;
        return vka_fail_vk(error, result, -1, "vkCreateInstance failed");
    }
    return VKA_OK;
}

static vka_status load_functions(gpu_instance *instance, vka_get_proc_fn get, bool validation, vka_error *error)
{
    VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_info(instance);
    const char *missing = gpu_load_instance(&instance->fn, get, instance->handle);
    VkResult result;

    if (!missing && validation)
        missing = gpu_load_debug(&instance->fn, get, instance->handle);
    if (missing)
        return vka_fail(error, VKA_ERR_VULKAN, "the Vulkan loader does not provide %s", missing);
    if (!validation)
        return VKA_OK;
    result = instance->fn.CreateDebugUtilsMessengerEXT(instance->handle, &messenger, NULL, &instance->messenger);
    if (result != VK_SUCCESS) {
        instance->messenger = VK_NULL_HANDLE;
        return vka_fail_vk(error, result, -1, "vkCreateDebugUtilsMessengerEXT failed");
    }
    return VKA_OK;
}

vka_status gpu_instance_create(gpu_instance **out, const vka_context_params *params, vka_error *error)
{
    const vka_allocator allocator = {params->realloc, params->realloc_user};
    gpu_instance *instance = vka_alloc(&allocator, 1, sizeof(*instance));
    vka_get_proc_fn get = NULL;
    vka_status status;

    if (!instance)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for the Vulkan instance");
    instance->allocator = allocator;
    instance->log = (vka_log){params->log, params->log_user};
    status = find_loader(instance, params, &get, error);
    if (status == VKA_OK)
        status = create_handle(instance, params->validation != 0, error);
    if (status == VKA_OK)
        status = load_functions(instance, get, params->validation != 0, error);
    if (status == VKA_OK)
        status = gpu_enumerate(instance, error);
    if (status == VKA_OK && instance->count == 0)
        status = vka_fail(error, VKA_ERR_NO_DEVICE, "%s", no_driver);
    if (status != VKA_OK)
        goto fail;
    gpu_mark_duplicates(instance->info, instance->count);
    *out = instance;
    return VKA_OK;
fail:
    gpu_instance_destroy(&instance);
    return status;
}

void gpu_instance_destroy(gpu_instance **instance)
{
    gpu_instance *dead = instance ? *instance : NULL;
    vka_allocator allocator;

    if (!dead)
        return;
    allocator = dead->allocator;
    if (dead->messenger)
        dead->fn.DestroyDebugUtilsMessengerEXT(dead->handle, dead->messenger, NULL);
    if (dead->handle && dead->fn.DestroyInstance)
        dead->fn.DestroyInstance(dead->handle, NULL);
    vka_library_close(&dead->library);
    vka_free(&allocator, dead->physical);
    vka_free(&allocator, dead->info);
    vka_free(&allocator, dead);
    *instance = NULL;
}

uint32_t gpu_instance_count(const gpu_instance *instance)
{
    return instance->count;
}

const vka_device_info *gpu_instance_info(const gpu_instance *instance, uint32_t index)
{
    return index < instance->count ? &instance->info[index] : NULL;
}
