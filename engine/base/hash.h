/* A hash for keys and for noticing damage; no defence against intent. */
#ifndef VKA_BASE_HASH_H
#define VKA_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a, 64 bits; `hash` is VKA_HASH_START or the result for what came before.
 * (Fowler, Noll, Vo; constants of draft-eastlake-fnv.) */
#define VKA_HASH_START 0xcbf29ce484222325ull
uint64_t vka_hash(uint64_t hash, const void *data, size_t size);

#endif
