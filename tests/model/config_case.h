/* What a configuration comes to, or why it is refused. */
#ifndef VKA_TESTS_CONFIG_CASE_H
#define VKA_TESTS_CONFIG_CASE_H

#include "support/require.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/config.h"

/* Parses from a block of exactly the size of the text. */
static inline vka_status parse(vka_config *config, const char *body, vka_error *error)
{
    size_t size = strlen(body) + 2;
    char *text = malloc(size + 1);
    vka_status status;

    assert_non_null(text);
    snprintf(text, size + 1, "{%s}", body);
    text = realloc(text, size);
    assert_non_null(text);
    status = vka_config_parse(config, text, size, "config.json", error);
    free(text);
    return status;
}

static inline vka_layer_desc block_of(const char *body, vka_block block, uint32_t layer)
{
    vka_layer_desc desc = {0};
    vka_config config = {0};
    vka_error error = {0};

    if (parse(&config, body, &error) != VKA_OK ||
        vka_config_layer(&config, block, layer, &desc, "config.json", &error) != VKA_OK)
        fail_msg("%s: %s", body, error.message);
    vka_config_free(&config);
    return desc;
}

static inline vka_layer_desc layer_of(const char *body, uint32_t layer)
{
    return block_of(body, VKA_BLOCK_SELF, layer);
}

static inline void refused(const char *body, vka_status status, const char *reason)
{
    vka_config config = {0};
    vka_error error = {0};

    if (parse(&config, body, &error) != status)
        fail_msg("%s: status %d, message '%s'", body, (int)error.status, error.message);
    if (!strstr(error.message, reason))
        fail_msg("'%s' lacks '%s'", error.message, reason);
    assert_null(config.root);
}

/* The configuration as a whole is good, and this layer is refused. */
static inline void layer_refused(const char *body, vka_block block, uint32_t layer, vka_status status,
                                 const char *reason)
{
    vka_layer_desc desc;
    vka_config config = {0};
    vka_error error = {0};

    if (parse(&config, body, &error) != VKA_OK)
        fail_msg("%s: %s", body, error.message);
    assert_int_equal(vka_config_layer(&config, block, layer, &desc, "config.json", &error), status);
    if (!strstr(error.message, reason))
        fail_msg("'%s' lacks '%s'", error.message, reason);
    vka_config_free(&config);
}

#endif
