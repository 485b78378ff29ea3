/* Sizes and names of element types. */
#include "vkattn/tensor.h"

size_t vka_dtype_size(vka_dtype dtype)
{
    switch (dtype) {
    case VKA_F32:
        return 4;
    case VKA_F16:
    case VKA_BF16:
        return 2;
    case VKA_DTYPE_DEFAULT:
        break;
    }
    return 0;
}

const char *vka_dtype_name(vka_dtype dtype)
{
    switch (dtype) {
    case VKA_DTYPE_DEFAULT:
        return "default";
    case VKA_F32:
        return "F32";
    case VKA_F16:
        return "F16";
    case VKA_BF16:
        return "BF16";
    }
    return "unknown";
}
