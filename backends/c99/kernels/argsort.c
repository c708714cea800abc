/* Whether entry a comes before entry b: the smaller, NaN last, the earlier of equals. */
static bool @before(const double *x, int64_t a, int64_t b) {
    const bool a_nan = x[a] != x[a], b_nan = x[b] != x[b];
    if (x[a] < x[b] || (b_nan && !a_nan)) {
        return true;
    }
    return a < b && !(x[b] < x[a]) && !(a_nan && !b_nan);
}

/* Places of the entries in increasing order, equals in theirs; heapsort. */
static void @argsort(const double *x, int64_t *order, int n) {
    for (int i = 0; i < n; ++i) {
        order[i] = i;
    }
    for (int start = n / 2, end = n; end > 1;) {
        int64_t moved;
        if (start > 0) {
            moved = order[--start];
        } else {
            moved = order[--end];
            order[end] = order[0];
        }
        int root = start;
        for (int child; (child = 2 * root + 1) < end; root = child) {
            if (child + 1 < end && @before(x, order[child], order[child + 1])) {
                ++child;
            }
            if (!@before(x, moved, order[child])) {
                break;
            }
            order[root] = order[child];
        }
        order[root] = moved;
    }
}
