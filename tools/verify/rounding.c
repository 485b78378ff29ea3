/* The number systems of the stored types, by arithmetic rather than by bits. */
#include "verify/internal.h"

#include <math.h>
#include <string.h>

/* A binary format: bits of the significand (the leading one included), smallest normal exponent, largest value. */
typedef struct format {
    int precision;
    int lowest;
    double largest;
} format;

static format format_of(vka_dtype dtype)
{
    switch (dtype) {
    case VKA_F16:
        return (format){11, -14, 65504};
    case VKA_BF16:
        return (format){8, -126, 0x1.FEp127};
    default:
        return (format){24, -126, 0x1.FFFFFEp127};
    }
}

/* Distance between neighbouring numbers of the format round `value`. */
static double spacing(double value, format in)
{
    int exponent = in.lowest + 1;
    if (value != 0)
        frexp(value, &exponent); /* |value| < 2^exponent */
    if (exponent - 1 < in.lowest)
        exponent = in.lowest + 1;
    return ldexp(1, exponent - in.precision);
}

double verify_round(double value, vka_dtype dtype)
{
    if (!isfinite(value))
        return value;
    format to = format_of(dtype);
    double step = spacing(value, to);
    double rounded = nearbyint(value / step) * step;
    return fabs(rounded) > to.largest ? copysign(INFINITY, value) : rounded;
}

double verify_rounding_error(double value, vka_dtype dtype)
{
    return spacing(value, format_of(dtype)) / 2;
}

static double half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    double fraction = bits & 1023;
    double magnitude = exponent == 0 ? fraction * 0x1p-24 : ldexp(1024 + fraction, exponent - 25);
    if (exponent == 31)
        magnitude = fraction == 0 ? INFINITY : NAN;
    return bits >> 15 ? -magnitude : magnitude;
}

void verify_load(double *out, const void *data, vka_dtype dtype, size_t count)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < count; i++) {
        uint16_t bits;
        float value;
        switch (dtype) {
        case VKA_F16:
            memcpy(&bits, bytes + 2 * i, sizeof bits);
            out[i] = half_value(bits);
            break;
        case VKA_BF16:
            memcpy(&bits, bytes + 2 * i, sizeof bits);
            memcpy(&value, &(uint32_t){(uint32_t)bits << 16}, sizeof value);
            out[i] = (double)value;
            break;
        default:
            memcpy(&value, bytes + 4 * i, sizeof value);
            out[i] = (double)value;
        }
    }
}
