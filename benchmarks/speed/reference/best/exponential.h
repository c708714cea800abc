/* e^x for |x| < 700 within 2e-14 of itself: 2^k e^r with |r| <= log(2)/2, and Taylor's polynomial of degree 11. */
#include <math.h>
#include <stdint.h>
#include <string.h>

static inline double exponential(double x) {
    const double k = rint(x * 0x1.71547652b82fep+0), r = x - k * 0x1.62e42fefa39efp-1;
    double p = 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r + 1;
    p = p * r + 1;
    const int64_t bits = (int64_t)((int32_t)k + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}
