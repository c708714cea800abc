/* Calls the code that CVXPYgen makes for a COLDQ step of examples/tracking.oco: `loop ROUNDS FILE`, seconds a round on stdout.
   A round of the file: c (10), y (10), a, Q (2), A (2 x 10, by columns), b (2). */
#include "cpg_solve.h"
#include "cpg_workspace.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SIZE = 45 };

int main(int argc, char **argv) {
    const long rounds = argc == 3 ? atol(argv[1]) : 0;
    double *values = malloc((size_t)rounds * SIZE * sizeof *values);
    FILE *file = argc == 3 ? fopen(argv[2], "rb") : NULL;
    if (!values || !file || fread(values, SIZE * sizeof *values, (size_t)rounds, file) != (size_t)rounds) {
        return 1;
    }
    const clock_t began = clock();
    for (long t = 0; t < rounds; ++t) {
        const double *v = values + t * SIZE;
        for (int i = 0; i < 10; ++i) {
            cpg_update_c(i, v[i]);
            cpg_update_y(i, v[10 + i]);
        }
        cpg_update_a(v[20]);
        for (int i = 0; i < 2; ++i) {
            cpg_update_Q(i, v[21 + i]);
            cpg_update_b(i, v[43 + i]);
        }
        for (int i = 0; i < 20; ++i) {
            cpg_update_A(i, v[23 + i]);
        }
        cpg_solve();
    }
    printf("%.9g\n", (double)(clock() - began) / CLOCKS_PER_SEC / (double)rounds);
    return 0;
}
