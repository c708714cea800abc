/* COLDQ on examples/job_scheduling.oco, written by hand: 100 variables in [0, 1000], a linear loss, g(x) = jobs - 4 sum log(1 + 4 x).
   The step has one multiplier. For a given one, each entry is the root of a quadratic; the multiplier is found by Newton's method. */
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { D = 100, REGIONS = 10 };

/* x(lam), g(x(lam)), and the slope of g in lam. */
static double respond(const double *y, const double *c, double scale, double lam, double jobs, double *x, double *slope) {
    double total = 0, bend = 0;
    for (int j = 0; j < D; ++j) { /* c + scale (x - y) - 16 lam / u = 0 in u = 1 + 4 x */
        const double p = c[j] - scale * (y[j] + 0.25), q = sqrt(p * p + 16 * lam * scale);
        const double u = p > 0 ? 32 * lam / (p + q) : 2 * (q - p) / scale;
        const double free = (u - 1) / 4;
        const int inside = free > 0 && free < 1000;
        x[j] = free < 0 ? 0 : free > 1000 ? 1000 : free;
        const double w = 1 + 4 * x[j];
        bend += inside ? 256 / (w * w * (scale + 64 * lam / (w * w))) : 0;
    }
    for (int j = 0; j < D; ++j) {
        total += log(1 + 4 * x[j]);
    }
    *slope = -bend;
    return jobs - 4 * total;
}

static void step(const double *y, const double *c, double scale, double Q, double jobs, double *x) {
    double low = 0, high = Q, lam = 0, slope, g = respond(y, c, scale, lam, jobs, x, &slope);
    if (g <= 0) {
        return;
    }
    for (int count = 0; count < 100; ++count) { /* g falls in lam; it is kept between a positive and a negative value */
        const double newton = slope < 0 ? lam - g / slope : high;
        double next = newton > low && newton < high ? newton : newton >= high ? high : (low + high) / 2;
        if (fabs(next - lam) <= 1e-15 * next) {
            return;
        }
        lam = next;
        g = respond(y, c, scale, lam, jobs, x, &slope);
        if (fabs(g) <= 1e-12 * jobs || (g > 0 && lam >= Q)) {
            return;
        }
        *(g > 0 ? &low : &high) = lam;
    }
}

void reference(int64_t rounds, const double *price, const double *jobs, double T, double *decisions) {
    double x[D], Q = T / 2;
    for (int j = 0; j < D; ++j) {
        x[j] = 500;
    }
    for (int64_t t = 0; t < rounds; ++t, price += REGIONS) {
        memcpy(decisions + t * D, x, sizeof x);
        double c[D], following[D], total = 0;
        for (int j = 0; j < D; ++j) {
            c[j] = price[j / 10];
            total += log(1 + 4 * x[j]);
        }
        const double g = jobs[t] - 4 * total;
        if (t > 0) {
            const double grown = (1 - 1 / T) * Q + (g > 0 ? g : 0);
            Q = grown > T / 2 ? grown : T / 2;
        }
        step(x, c, 2 * sqrt(t + 1 < T ? (double)t + 1 : T), Q, jobs[t], following);
        memcpy(x, following, sizeof x);
    }
}
