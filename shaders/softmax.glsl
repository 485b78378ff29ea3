/* Online softmax: (m, l) of a row are its running maximum and the sum of exp(score - m). Invisible keys are left out by
 * select; exp and products of what is not visible are never used. */

const float LOWEST = -3.402823466e38; /* of the running maximum: finite, so that no infinity is subtracted from
                                       * another, and no score is below it */

/* What old sums are multiplied by when the maximum rises; exactly 1 when it stays, so that a block in which a row sees
 * nothing leaves its bits alone. */
float rescale(float old_maximum, float new_maximum)
{
    return old_maximum == new_maximum ? 1.0 : exp(old_maximum - new_maximum);
}

vec4 normalised(vec4 sum, float total)
{
    return mix(sum / total, vec4(0.0), bvec4(total == 0.0));
}

float log_sum_exp(float maximum, float total)
{
    return total == 0.0 ? uintBitsToFloat(0xff800000u) : maximum + log(total);
}
