/* See identity.h. */
#include "base/identity.h"

#include <stdio.h>

#include "vkattn/version.h"

void vka_uuid_text(const uint8_t uuid[16], char out[33])
{
    for (size_t i = 0; i < 16; i++)
        snprintf(out + 2 * i, 3, "%02x", uuid[i]);
}

void vka_device_identity(const vka_device_info *info, char out[VKA_IDENTITY_BYTES])
{
    char uuid[33];

    vka_uuid_text(info->device_uuid, uuid);
    snprintf(out, VKA_IDENTITY_BYTES, "vkattn %s driver %u %u [%s] device %s", VKA_VERSION_STRING, info->driver_id,
             info->driver_version, info->driver_info, uuid);
    for (char *c = out; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
}
