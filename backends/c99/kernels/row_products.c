enum { @TILE = 16 }; /* `LEAST_TILED` */

/* Writes to out (m x n) the inner products of the rows of x (m x inner) with those of y (n x inner), each added up in the order of its terms:
   four rows of x with a tile of rows of y at a time, whose sums stay in registers; panel (inner x TILE) is space for these, transposed. Where
   the result is symmetric, entries above the diagonal are those below it. */
static void @row_products(const double *restrict x, const double *restrict y, double *restrict out, double *restrict panel, int m, int n,
                          int inner, bool symmetric) {
    for (int column = 0; column < n; column += @TILE) {
        const int width = n - column < @TILE ? n - column : @TILE;
        for (int k = 0; k < inner; ++k) {
            for (int j = 0; j < @TILE; ++j) {
                panel[k * @TILE + j] = j < width ? y[(column + j) * inner + k] : 0;
            }
        }
        for (int row = symmetric ? column : 0; row < m; row += 4) {
            /* rows behind the last one are this one again, and write the same */
            const int second = row + 1 < m ? row + 1 : row, third = row + 2 < m ? row + 2 : row, fourth = row + 3 < m ? row + 3 : row;
            double s[@TILE] = {0}, t[@TILE] = {0}, u[@TILE] = {0}, v[@TILE] = {0};
            for (int k = 0; k < inner; ++k) {
                const double a = x[row * inner + k], b = x[second * inner + k];
                const double c = x[third * inner + k], d = x[fourth * inner + k];
                for (int j = 0; j < @TILE; ++j) {
                    const double p = panel[k * @TILE + j];
                    s[j] += a * p;
                    t[j] += b * p;
                    u[j] += c * p;
                    v[j] += d * p;
                }
            }
            for (int j = 0; j < width; ++j) {
                out[row * n + column + j] = s[j];
                out[second * n + column + j] = t[j];
                out[third * n + column + j] = u[j];
                out[fourth * n + column + j] = v[j];
            }
        }
        for (int j = 0; j < width && symmetric; ++j) {
            for (int row = column + j + 1; row < m; ++row) {
                out[(column + j) * n + row] = out[row * n + column + j];
            }
        }
    }
}
