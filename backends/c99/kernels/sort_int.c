/* Increasing order; heapsort. */
static void @sort_int(int64_t *x, int n) {
    for (int start = n / 2, end = n; end > 1;) {
        int64_t moved;
        if (start > 0) {
            moved = x[--start];
        } else {
            moved = x[--end];
            x[end] = x[0];
        }
        int root = start;
        for (int child; (child = 2 * root + 1) < end; root = child) {
            if (child + 1 < end && x[child] < x[child + 1]) {
                ++child;
            }
            if (!(moved < x[child])) {
                break;
            }
            x[root] = x[child];
        }
        x[root] = moved;
    }
}
