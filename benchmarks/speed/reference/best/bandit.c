/* Bandit gradient descent (Flaxman, Kalai & McMahan 2005) on benchmarks/speed/bandit.oco, given the normal numbers of its directions. */
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { D = 50 };

void reference(int64_t rounds, const double *a, const double *u, double T, double *decisions) {
    double y[D] = {0};
    const double delta = 0.5, eta = sqrt(2) / T;
    for (int64_t t = 0; t < rounds; ++t, a += D, u += D, decisions += D) {
        double length = 0, loss = 0, size = 0;
        for (int j = 0; j < D; ++j) {
            length += u[j] * u[j];
        }
        const double share = 1 / sqrt(length);
        for (int j = 0; j < D; ++j) {
            decisions[j] = y[j] + delta * share * u[j];
            loss += a[j] * decisions[j];
        }
        const double move = eta * D / delta * loss * share;
        for (int j = 0; j < D; ++j) {
            y[j] -= move * u[j];
            size += y[j] * y[j];
        }
        if (size > (1 - delta) * (1 - delta)) {
            const double within = (1 - delta) / sqrt(size);
            for (int j = 0; j < D; ++j) {
                y[j] *= within;
            }
        }
    }
}
