/* Which device, driver and library something on disk was made for. */
#ifndef VKA_BASE_IDENTITY_H
#define VKA_BASE_IDENTITY_H

#include "vkattn/context.h"

/* One line of printable text with the library's version, driver id, driver version, driver info (some drivers never
 * change their version) and device UUID. Longest: VKA_IDENTITY_BYTES with the end. */
#define VKA_IDENTITY_BYTES 400
void vka_device_identity(const vka_device_info *info, char out[VKA_IDENTITY_BYTES]);

/* 32 hex digits and the end. */
void vka_uuid_text(const uint8_t uuid[16], char out[33]);

#endif
