/* Linked into the programs of sanitizer builds, so that only our own findings are reported. */

int dlclose(void *handle);
const char *__lsan_default_suppressions(void);

/* In place of the C library's: libraries stay loaded. Destroying a Vulkan instance unloads drivers and layers; what
 * their globals still point to would then look like leaks (lavapipe: 128 bytes for an instance that was only made and
 * destroyed), at addresses that have no name. */
int dlclose(void *handle)
{
    (void)handle;
    return 0;
}

/* The validation layer (1.3.239) loses some 10 KB per device when synchronisation validation is on; without it, the
 * same run is clean. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libVkLayer_khronos_validation\n";
}
