/* One call of the attention step with its tensors, checked against float64. */
#ifndef VKA_TESTS_LAYER_ATTENTION_SCENE_H
#define VKA_TESTS_LAYER_ATTENTION_SCENE_H

#include "layer/harness.h"

typedef struct attention_case {
    const char *name;
    struct {
        uint32_t batch, heads, kv_heads, head_dim, v_head_dim, q_len, kv_len;
    };
    vka_causal causal;
    uint32_t window;
    double scale;
    vka_dtype host, cache; /* default F32 */
    vka_align align;
    uint32_t window_right;
    double softcap;
    bool sinks, alibi;
    uint32_t mask_rank, mask_shape[4]; /* with holes of -inf; a host mask has the type `host` */
    bool keep;                         /* boolean */
} attention_case;

enum { TENSOR_Q, TENSOR_K, TENSOR_V, TENSOR_MASK, TENSOR_O, TENSOR_LSE, TENSORS };

/* One case with its tensors: as the caller has them, and as F32. */
typedef struct attention_scene {
    vka_context *context;
    const attention_case *c;
    size_t count[TENSORS];
    unsigned char *host[TENSORS];
    float *value[TENSORS];
    unsigned char *keep;   /* the boolean mask */
    float *sinks, *slopes; /* [heads], or NULL */
} attention_scene;

vka_dtype attention_host_type(const attention_case *c, int tensor);

/* Makes the inputs; outputs are full of NaN. */
void attention_open(attention_scene *s, vka_context *context, const attention_case *c);
void attention_close(attention_scene *s);

/* Host tensors. */
vka_attention_params attention_params(const attention_scene *s, uint32_t device);
/* Runs on `device` from host tensors, fails the test on an error, and sets value[TENSOR_O] and value[TENSOR_LSE]. */
void attention_run(attention_scene *s, uint32_t device);
/* The same with those tensors in buffers whose bits are set in `on_device`, F32 cases only; results to `o` and `lse`.
 */
void attention_run_on_device(const attention_scene *s, uint32_t device, unsigned on_device, float *o, float *lse);
/* Judges value[TENSOR_O] and value[TENSOR_LSE]; `mutant` plants a bug in the reference. */
void attention_judge(const attention_scene *s, verify_mutant mutant, verify_result *output, verify_result *lse);

/* Runs and judges; an element over its bound fails the test. */
void attention_check(attention_scene *s, uint32_t device);

#endif
