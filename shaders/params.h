/* Push constants and parameter-buffer records, shared by C and GLSL. Only 32-bit scalars, so both sides agree on the
 * layout (std430). All offsets and strides count elements of the buffer they index unless said otherwise; those of
 * float rows are multiples of 4. */
#ifndef VKA_SHADERS_PARAMS_H
#define VKA_SHADERS_PARAMS_H

#ifdef VKA_GLSL
#define VKA_UINT uint
#define VKA_INT int
#define VKA_FLOAT float
#define VKA_RECORD_BEGIN(name) struct name {
#define VKA_RECORD_END(name) };
#else
#include <stdint.h>
#define VKA_UINT uint32_t
#define VKA_INT int32_t
#define VKA_FLOAT float
#define VKA_RECORD_BEGIN(name) typedef struct name {
#define VKA_RECORD_END(name) } name;
#endif

#define VKA_NO_OFFSET 0xffffffffu

/* Words of the records that lie in call parameters. */
#define EPILOGUE_ROW_WORDS 4u
#define ATTENTION_TILE_WORDS 8u
#define ATTENTION_HEADS_WORDS 4u
#define COMBINE_ROW_WORDS 4u

/* GEMM, GEMV: y[i, j] = sum over k of x[i, k] * w[j, k], i < rows, j < cols, k < depth (a multiple of 8). Workgroup z
 * takes the z-th of several such products, whose operands begin z*x_step, z*w_step and z*y_step further on (multiples of
 * 4, 8 and 1): with w_step = cols/8*w_stride it is the next `cols` rows of one matrix.
 * Bindings: 0 x (float), 1 w (float, or two 16-bit values a word, the lower-addressed one in the low half),
 * 2 y (float). w_offset and w_stride count weight elements and are multiples of 8.
 * Weights lie in groups of eight columns j whose octets (eight consecutive k) are interleaved: w[j, k] is element k % 8 of
 * octet (j / 8 * w_stride + w_offset + k) / 8 * 8 + j % 8. The last group is complete in memory. */
VKA_RECORD_BEGIN(gemm_push)
    VKA_UINT rows;
    VKA_UINT cols;
    VKA_UINT depth;
    VKA_UINT x_offset;
    VKA_UINT x_stride;
    VKA_UINT w_offset;
    VKA_UINT w_stride;
    VKA_UINT y_offset;
    VKA_UINT y_stride;
    VKA_UINT x_step;
    VKA_UINT w_step;
    VKA_UINT y_step;
VKA_RECORD_END(gemm_push)

/* EPILOGUE: per row and head: bias, clip, RMSNorm, RoPE, sigmoid, then store, each as the specialisation constants say
 * (epilogue_kind in engine/kernels/kernels.h).
 * Bindings: 0 call parameters (uint), 1 layer constants (float: biases and norm weights, heads padded to head_pad with
 * zeros), 2 source (float), 3 destination: float rows, or the cache slab.
 * Source element: src_offset + row*src_stride + head*head_pad + i.
 * Not paged: destination float dst_offset + row*dst_stride + head*dst_head_stride + i (dtype of the variant is ignored:
 * always float). Paged: only rows whose record names `slab`; cache element
 * page*page_stride + dst_offset + (head*page_size + slot)*head_pad + i, in the variant's dtype (F16 packed two a word);
 * page_stride and dst_offset are then multiples of 8.
 * Elements head_dim .. head_pad-1 are written as zeros. Invocations own whole words, so nothing is written twice.
 * Offsets in constants, record_offset and record_words are multiples of 4 too.
 * With `squares` nothing but the sum of squares of each head after bias and clip is stored, to float
 * dst_offset + row*dst_stride + head. */
#define EPILOGUE_NORM_NONE 0u
#define EPILOGUE_NORM_HEAD 1u /* over a head; weights at norm_offset + i */
#define EPILOGUE_NORM_ROW  2u /* over all heads, by a given factor; weights at norm_offset + head*head_pad + i */

VKA_RECORD_BEGIN(epilogue_push)
    VKA_UINT rows;
    VKA_UINT heads;
    VKA_UINT head_dim;
    VKA_UINT head_pad;
    VKA_UINT src_offset;
    VKA_UINT src_stride;
    VKA_UINT bias_offset; /* in constants; element head*head_pad + i */
    VKA_UINT norm_offset; /* in constants; element i */
    VKA_FLOAT norm_eps;
    VKA_UINT record_offset; /* words in the call parameters: epilogue_row records, each followed by its angles */
    VKA_UINT record_words;  /* words from one record to the next */
    VKA_UINT dst_offset;
    VKA_UINT dst_stride;
    VKA_UINT dst_head_stride;
    VKA_UINT slab;
    VKA_UINT page_stride;
    VKA_UINT page_size;
    VKA_UINT factor_offset; /* EPILOGUE_NORM_ROW: word in the call parameters, two a row: the factor of row 0 */
VKA_RECORD_END(epilogue_push)

/* One row of a chunk. If there is RoPE, EPILOGUE_ANGLES(rotary_offset, rotary_dim) floats c follow, and as many floats
 * s, both from element rotary_offset - rotary_offset % 4 of a head on: element i of the turned ones becomes
 * x[i] * c[i] + x[partner of i] * s[i]. What stands beside them in c and s is not used. */
VKA_RECORD_BEGIN(epilogue_row)
    VKA_UINT slab; /* that holds the row's own page */
    VKA_UINT page; /* slab-local */
    VKA_UINT slot; /* in the page */
    VKA_UINT reserved;
VKA_RECORD_END(epilogue_row)

#define EPILOGUE_ANGLES(rotary_offset, rotary_dim) (((rotary_offset) % 4u + (rotary_dim) + 3u) / 4u * 4u)

/* PREFILL, DECODE. Bindings: 0 call parameters (uint), 1 q (float), 2 cache slab (variant's dtype), 3 out (float).
 * Workgroup x: tile_offset + x names the attention_tile; y: the attention_heads record.
 * K element: page*page_stride + k_offset + (kv_head*page_size + j % page_size)*qk_pad + i, and V likewise with v_offset
 * and v_stride, where page = parameters[tile.pages + j / page_size]. page_stride, k_offset, v_offset count cache
 * elements and are multiples of 8. out_stride is a multiple of 4.
 * V may be part of K: with v_stride = qk_pad and v_offset = k_offset + d its vectors are elements d .. d + v_pad - 1 of
 * those of K (latent attention: d = 0).
 * Query row r of a tile, position p = tile.position + r, sees key j iff key_begin <= j < key_end, p - j < left and
 * j - p < right; both are at most ATTENTION_NO_LIMIT, which is no limit. Causal: right = 1.
 * Options, each a specialisation constant, change the score s of row at p, local query head h, key j, in this order:
 *   softcap: s = softcap * tanh(s / softcap);
 *   ALiBi:   s += slope[h] * (j - p), slope[h] the float at word slopes_offset + h of the call parameters;
 *   mask:    s += the float mask_offset + b*mask_batch_stride + h*mask_head_stride + i*mask_row_stride +
 *            j*mask_key_stride of q's buffer, where b and i are mask_first_row + row + r divided by mask_queries and what
 *            is left. A mask of -inf hides the key, and so does mask_keys <= j.
 * ... and what becomes of a finished row:
 *   sinks:   the float at word sinks_offset + h of the call parameters is the score of one more key, without a value;
 *   gate:    O is multiplied by the floats gate_offset + (row + r)*gate_stride + head*v_pad + i of q's buffer. Offset and
 *            stride are multiples of 4.
 * Masks and gates share q's buffer, because floor devices have four storage buffers and no more.
 * slot_stride == 0: final: O = acc / l (0 if l == 0) at (row + r)*out_stride + head*v_pad + i; if lse_offset is set,
 * out[lse_offset + (row + r)*heads + head] = m + log l (-inf if l == 0).
 * slot_stride > 0: partial: base = ((slot + r*slot_stride)*heads + head)*(v_pad + 8);
 * unnormalised acc at base + i, m at base + v_pad, l at base + v_pad + 1. Nothing seen: acc = 0, m = -FLT_MAX, l = 0.
 * Specialisation constants: see attention_kind in engine/kernels/kernels.h. Padding elements of q and K are zeros. */
#define ATTENTION_NO_LIMIT 0x7fffffffu

VKA_RECORD_BEGIN(attention_push)
    VKA_UINT tile_offset;  /* words: first attention_tile */
    VKA_UINT heads_offset; /* words: first attention_heads */
    VKA_UINT heads;        /* local query heads */
    VKA_UINT q_stride;     /* row stride of q; head h at h*qk_pad */
    VKA_UINT out_stride;
    VKA_UINT lse_offset; /* or VKA_NO_OFFSET */
    VKA_UINT page_size;
    VKA_UINT page_stride;
    VKA_UINT k_offset;
    VKA_UINT v_offset;
    VKA_FLOAT scale;
    VKA_UINT left;
    VKA_UINT right;
    VKA_FLOAT softcap;
    VKA_UINT sinks_offset;
    VKA_UINT slopes_offset;
    VKA_UINT gate_offset;
    VKA_UINT gate_stride;
    VKA_UINT mask_offset;
    VKA_UINT mask_batch_stride; /* 0 where the mask is the same for all; as the other strides */
    VKA_UINT mask_head_stride;
    VKA_UINT mask_row_stride;
    VKA_UINT mask_key_stride;
    VKA_UINT mask_keys;
    VKA_UINT mask_queries;
    VKA_UINT mask_first_row;
VKA_RECORD_END(attention_push)

VKA_RECORD_BEGIN(attention_tile)
    VKA_UINT row;      /* of the chunk: the first query row */
    VKA_UINT rows;     /* 1 .. tile_rows of the variant */
    VKA_INT position;  /* of the first row; may be negative: then that row sees nothing */
    VKA_UINT key_begin;
    VKA_UINT key_end;  /* exclusive; never past the keys that are there */
    VKA_UINT pages;    /* words: page table of the sequence, entry j / page_size is slab-local */
    VKA_UINT slot;
    VKA_UINT slot_stride;
VKA_RECORD_END(attention_tile)

VKA_RECORD_BEGIN(attention_heads)
    VKA_UINT kv_head;
    VKA_UINT q_begin;
    VKA_UINT q_count; /* 1 .. tile_cols of the variant */
    VKA_UINT reserved;
VKA_RECORD_END(attention_heads)

/* COMBINE. Bindings: 0 call parameters, 1 partials (layout above), 2 out, 3 q's buffer. One workgroup per (entry, head).
 * m = max m_i; w_i = 0 if l_i == 0, else exp(m_i - m); l = sum w_i l_i; O = sum w_i acc_i / l (0 if l == 0). Then sinks
 * and gate, as above. */
VKA_RECORD_BEGIN(combine_push)
    VKA_UINT entry_offset; /* words: first combine_row */
    VKA_UINT heads;
    VKA_UINT v_pad;
    VKA_UINT out_stride;
    VKA_UINT lse_offset;
    VKA_UINT sinks_offset;
    VKA_UINT gate_offset;
    VKA_UINT gate_stride;
VKA_RECORD_END(combine_push)

VKA_RECORD_BEGIN(combine_row)
    VKA_UINT row;
    VKA_UINT slot;  /* first */
    VKA_UINT slots; /* count, consecutive */
    VKA_UINT reserved;
VKA_RECORD_END(combine_row)

/* PACK: dst[b, t, h, i] = i < src_dim ? src[b, t, h, i] : 0 for i < dst_dim. Source is float; destination float, or
 * packed F16 (then dst_dim and the destination's offset and strides are even). Bindings: 0 source, 1 destination. */
VKA_RECORD_BEGIN(pack_push)
    VKA_UINT batch;
    VKA_UINT tokens; /* not `length`: GLSL reserves it */
    VKA_UINT heads;
    VKA_UINT src_dim;
    VKA_UINT dst_dim;
    VKA_UINT src_offset;
    VKA_UINT src_batch_stride;
    VKA_UINT src_length_stride;
    VKA_UINT src_head_stride;
    VKA_UINT dst_offset;
    VKA_UINT dst_batch_stride;
    VKA_UINT dst_length_stride;
    VKA_UINT dst_head_stride;
VKA_RECORD_END(pack_push)

/* PEAK_FMA: every invocation does count * PEAK_FMA_STEPS * tile_cols multiply-adds x = x * factor + term. Binding:
 * 0 sums (float, one an invocation).
 * PEAK_READ: workgroup g reads vectors g*count*local .. (g + 1)*count*local - 1 of 16 bytes; count is a multiple of
 * PEAK_UNROLL. A sum that equals `term` is stored. Bindings: 0 source, 1 sums.
 * PEAK_COPY: the same vectors, copied. Bindings: 0 source, 1 destination. */
#define PEAK_FMA_STEPS 8u
#define PEAK_UNROLL 8u

VKA_RECORD_BEGIN(peak_push)
    VKA_UINT count;
    VKA_FLOAT factor;
    VKA_FLOAT term;
VKA_RECORD_END(peak_push)

#endif
