/* Increasing order, NaN last; heapsort. */
static void @sort(double *x, int n) {
    for (int start = n / 2, end = n; end > 1;) {
        double moved;
        if (start > 0) {
            moved = x[--start];
        } else {
            moved = x[--end];
            x[end] = x[0];
        }
        int root = start;
        for (int child; (child = 2 * root + 1) < end; root = child) {
            if (child + 1 < end && (x[child] < x[child + 1] || (x[child + 1] != x[child + 1] && x[child] == x[child]))) {
                ++child;
            }
            if (!(moved < x[child] || (x[child] != x[child] && moved == moved))) {
                break;
            }
            x[root] = x[child];
        }
        x[root] = moved;
    }
}
