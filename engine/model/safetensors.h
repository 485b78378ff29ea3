/* Internal side of vka_tensor_file: parsing from memory, and the types that the public view does not show. */
#ifndef VKA_MODEL_SAFETENSORS_H
#define VKA_MODEL_SAFETENSORS_H

#include "vkattn/model.h"

/* Parses a whole file image; `data` must outlive *out, which does not own it. `label` starts every message. */
vka_status vka_tensor_file_parse(vka_tensor_file **out, const void *data, size_t size, const char *label,
                                 vka_error *error);

/* The type of a tensor of a vka_tensor_file as its header spells it, e.g. "I64". */
const char *vka_tensor_type_name(const vka_named_tensor *tensor);

/* The matrix that `tensor` of a vka_tensor_file is as a weight: one or two dimensions (a vector is one row), of a
 * type that the engine computes with. `label` is the file. */
vka_status vka_tensor_as_matrix(vka_tensor *out, const vka_named_tensor *tensor, const char *label, vka_error *error);

#endif
