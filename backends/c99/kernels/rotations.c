enum { @STRIP = 32 };

/* Cosine and sine of the rotation that takes (f, g) to (r, 0). */
static double @rotation(double f, double g, double *cosine, double *sine) {
    double r = sqrt(f * f + g * g);
    if (r < 1e-140) { /* the squares may have lost digits */
        r = hypot(f, g);
    }
    const double inverse = r > 0 ? 1 / r : 0.0;
    *cosine = r > 0 ? f * inverse : 1.0;
    *sine = g * inverse;
    return r;
}

/* Sweeps of rotations over rows lo to hi of z (rows of n entries), a strip of columns at a time, so that it stays in the cache. A sweep is
   recorded as the row where it begins, its length, and the cosine and sine of each turn of a row with the next one, which is `step` rows
   further. */
static void @rotate_rows(double *restrict z, int n, const double *restrict turns, int length, int lo, int hi, int step,
                         double *restrict strip) {
    for (int c = 0; c < n; c += @STRIP) {
        const int width = n - c < @STRIP ? n - c : @STRIP;
        for (int r = lo; r <= hi; ++r) {
            for (int k = 0; k < width; ++k) {
                strip[r * @STRIP + k] = z[r * n + c + k];
            }
            for (int k = width; k < @STRIP; ++k) {
                strip[r * @STRIP + k] = 0.0;
            }
        }
        for (int p = 0; p < length;) {
            double *row = strip + (int)turns[p] * @STRIP, carried[@STRIP];
            const int end = p + 2 + 2 * (int)turns[p + 1];
            memcpy(carried, row, sizeof carried);
            for (p += 2; p < end; p += 2) {
                const double cosine = turns[p], sine = turns[p + 1];
                double *const next = row + step * @STRIP;
                for (int k = 0; k < @STRIP; ++k) {
                    const double x = next[k], y = carried[k];
                    row[k] = cosine * y + sine * x;
                    carried[k] = cosine * x - sine * y;
                }
                row = next;
            }
            memcpy(row, carried, sizeof carried);
        }
        for (int r = lo; r <= hi; ++r) {
            for (int k = 0; k < width; ++k) {
                z[r * n + c + k] = strip[r * @STRIP + k];
            }
        }
    }
}

static void @swap_rows(double *z, int n, int i, int j) {
    for (int r = 0; r < n; ++r) {
        const double x = z[i * n + r];
        z[i * n + r] = z[j * n + r];
        z[j * n + r] = x;
    }
}
