/* The exponent of the largest of n entries, so that squares of scaled ones neither overflow nor vanish; false where one is not finite. */
static bool @exponent_of(const double *a, int n, int *exponent) {
    double largest = 0, finite = 0;
    for (int i = 0; i < n; ++i) {
        largest = fabs(a[i]) > largest ? fabs(a[i]) : largest;
        finite += a[i] * 0.0;
    }
    *exponent = 0;
    if (largest > 0 && finite == 0) {
        frexp(largest, exponent);
    }
    return finite == 0;
}

/* The scale of the reflection H = I - scale u u', u[0] = 1, that takes x to `image` times the first unit vector; u replaces x. */
static double @reflection(double *x, int n, double *image) {
    const double first = x[0], rest = @dot(x + 1, x + 1, n - 1);
    x[0] = 1.0;
    *image = first;
    if (!(rest > 1e-280)) { /* of entries of size about one nothing that counts is left */
        return 0.0;
    }
    const double length = sqrt(rest + first * first), onto = first > 0 ? -length : length, divisor = 1 / (first - onto);
    for (int j = 1; j < n; ++j) {
        x[j] *= divisor;
    }
    *image = onto;
    return (onto - first) / onto;
}

/* One row z times I - scale u u'. */
static void @reflect(double *restrict z, const double *restrict u, int n, double scale) {
    const double t = scale * @dot(z, u, n);
    for (int j = 0; j < n; ++j) {
        z[j] -= t * u[j];
    }
}

/* Four rows at once, so that u is read once for all. */
static void @reflect_four(double *restrict z, int stride, const double *restrict u, int n, double scale) {
    double *restrict z1 = z + stride, *restrict z2 = z1 + stride, *restrict z3 = z2 + stride;
    double s[4][8] = {{0}}, t[4];
    int j = 0;
    for (; j + 8 <= n; j += 8) {
        for (int k = 0; k < 8; ++k) {
            s[0][k] += z[j + k] * u[j + k];
            s[1][k] += z1[j + k] * u[j + k];
            s[2][k] += z2[j + k] * u[j + k];
            s[3][k] += z3[j + k] * u[j + k];
        }
    }
    for (; j < n; ++j) {
        s[0][0] += z[j] * u[j];
        s[1][0] += z1[j] * u[j];
        s[2][0] += z2[j] * u[j];
        s[3][0] += z3[j] * u[j];
    }
    for (int r = 0; r < 4; ++r) {
        t[r] = scale * (((s[r][0] + s[r][1]) + (s[r][2] + s[r][3])) + ((s[r][4] + s[r][5]) + (s[r][6] + s[r][7])));
    }
    for (j = 0; j < n; ++j) {
        z[j] -= t[0] * u[j];
        z1[j] -= t[1] * u[j];
        z2[j] -= t[2] * u[j];
        z3[j] -= t[3] * u[j];
    }
}

/* The first `rows` rows (n entries each) of ... H_1 H_0, where u of H_j is the row a[j * n + j + offset ...] and there are `count`. */
static void @product_of_reflections(double *z, int rows, int n, const double *a, const double *scales, int count, int offset) {
    for (int i = 0; i < rows * n; ++i) {
        z[i] = i % (n + 1) == 0 ? 1.0 : 0.0;
    }
    for (int i = 0; i < rows; i += 4) { /* H_j leaves unit vectors before j + offset as they are */
        const int end = i + 4 < rows ? i + 4 : rows;
        for (int j = end - offset < count ? end - 1 - offset : count - 1; j >= 0; --j) {
            const int first = j + offset;
            if (end == i + 4) {
                @reflect_four(z + i * n + first, n, a + j * n + first, n - first, scales[j]);
                continue;
            }
            for (int r = i; r < end; ++r) {
                @reflect(z + r * n + first, a + j * n + first, n - first, scales[j]);
            }
        }
    }
}
