/* What this machine does at most: additions of products in registers, and numbers read and written in a triad over more than its caches. */
#include <stdint.h>

enum { CHAINS = 96 };

/* 2 * CHAINS operations a turn on numbers that no memory holds. */
void multiply_and_add(int64_t turns, double factor, double *sums) {
    double s[CHAINS];
    for (int k = 0; k < CHAINS; ++k) {
        s[k] = k;
    }
    for (int64_t t = 0; t < turns; ++t) {
        for (int k = 0; k < CHAINS; ++k) {
            s[k] = s[k] * factor + 1;
        }
    }
    for (int k = 0; k < CHAINS; ++k) {
        sums[k] = s[k];
    }
}

/* 24 bytes an entry. */
void triad(int64_t count, double factor, const double *restrict a, const double *restrict b, double *restrict c) {
    for (int64_t i = 0; i < count; ++i) {
        c[i] = a[i] + factor * b[i];
    }
}
