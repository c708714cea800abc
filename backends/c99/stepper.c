/* The quick way from Python into a compiled learner: one round in, one decision out, checked on the way.
 *
 * A Stepper drives any learner through four functions of one form each. Whatever is not plain (another kind or shape of array, a value
 * out of bounds, a name too many) goes to `slow_observe`, which is Python and says what is wrong. */
#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <Python.h>
#include <structmember.h>
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>
#include <numpy/random/distributions.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef int64_t (*prepare_function)(void *self, const void *const *inputs);
typedef int64_t (*decide_function)(void *self, const void *const *draws, double *decisions);
typedef int64_t (*observe_function)(void *self, const void *const *inputs, const void *const *draws);
typedef int64_t (*measure_function)(void *self, const double *decisions, const void *const *inputs, double *measured);

enum { MOST_AXES = 32 };

typedef struct {
    PyObject *name; /* interned */
    int type;       /* NPY_DOUBLE or NPY_INT64 */
    int axes;
    npy_intp shape[MOST_AXES];
    double *copy; /* of an input: where the entries of lists and dicts go, in words of eight bytes */
    double *kept; /* of a context: its entries in this round, in words of eight bytes; NULL of other inputs */
    const double *lower, *upper; /* of a context: bounds of its entries */
    const void *left; /* of what rounds before left to this one: where it lies in the struct; NULL of data */
    PyObject *names; /* of an input: by axis a tuple of its entries' names, or None; of a decision: the axes of its NamedArray; or None */
} Form;

typedef struct {
    npy_intp size;
    bool normal; /* standard normal; else uniform on [0, 1) */
} Draw;

typedef struct {
    PyObject_HEAD
    PyObject *memory;   /* an array of bytes that holds the learner's struct */
    PyObject *numbers;  /* an array of the random arrays of a round, side by side */
    PyObject *random;   /* the learner's generator of bits */
    PyTypeObject *named; /* NamedArray of Python */
    PyObject *slow_decide, *slow_observe; /* the same in Python */
    PyObject *look; /* what the learner sees of itself: watch_round(feedback, decisions, inputs) */
    char busy; /* Python is at work on the learner: every call goes there, and is told so if it comes from another thread */
    void *self;
    int64_t *round;
    int64_t answered; /* the last round that was decided */
    int64_t drawn;    /* the round whose random arrays are in `numbers` */
    PyObject *context; /* arrays of the contexts' entries, of their bounds, and of the struct before they were taken; None without */
    int64_t known;    /* the round whose contexts were taken */
    int contexts;     /* inputs that are contexts */
    bool tells;       /* feedback has the data of its round */
    size_t words;     /* entries of all inputs */
    void *before;
    size_t size;      /* bytes of the struct that are its state */
    prepare_function prepare; /* NULL where contexts change nothing of the state */
    int64_t horizon; /* calls of this round and the next go through Python; -1: of none */
    decide_function decide;
    observe_function observe;
    measure_function measure;
    int held; /* the decisions lie in the struct until the round ends, where `measure` finds them */
    int64_t spaced; /* the round whose decisions are in `space`; 0 where Python was at work since */
    int inputs, decisions;
    PyObject *rows; /* forms of inputs, as tuples of Python */
    Form *forms; /* inputs, then decisions */
    const void **entries; /* where those of a round lie, by form */
    double *single;       /* numbers among them */
    double *space; /* the decisions, side by side */
    Py_ssize_t constraints, equalities;
    int draws;
    Draw *kinds;
    const void **places; /* of the random arrays */
    bitgen_t *bits;
} Stepper;

typedef struct {
    PyObject_HEAD
    int64_t round;
    Py_ssize_t constraints, equalities;
    PyObject *rows;   /* forms of the data that feedback of models with contexts or states has; else NULL */
    PyObject *data;   /* a dict of them, made when it is first asked for */
    double values[1]; /* the loss, values of g, values of h, and the data side by side in words of eight bytes */
} Feedback;

static PyTypeObject FeedbackType;

static PyObject *array_of(const Form *form, const void *values) {
    PyObject *array = PyArray_SimpleNew(form->axes, form->shape, form->type);
    if (array) {
        memcpy(PyArray_DATA((PyArrayObject *)array), values, (size_t)PyArray_NBYTES((PyArrayObject *)array));
    }
    return array;
}

static PyObject *vector_of(const double *values, Py_ssize_t count) {
    const Form form = {.type = NPY_DOUBLE, .axes = 1, .shape = {count}};
    return array_of(&form, values);
}

static size_t size_of(const Form *form) {
    size_t size = 1;
    for (int k = 0; k < form->axes; ++k) {
        size *= (size_t)form->shape[k];
    }
    return size;
}

/* One form from (name, kind, shape, names). */
static int read_form(Form *form, PyObject *row) {
    PyObject *name, *shape, *names;
    const char *kind;
    if (!PyArg_ParseTuple(row, "UsO!O", &name, &kind, &PyTuple_Type, &shape, &names)) {
        return -1;
    }
    form->names = Py_NewRef(names);
    Py_INCREF(name);
    PyUnicode_InternInPlace(&name);
    form->name = name;
    form->type = kind[0] == 'd' ? NPY_DOUBLE : NPY_INT64;
    form->axes = (int)PyTuple_GET_SIZE(shape);
    for (int k = 0; k < form->axes; ++k) {
        form->shape[k] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, k));
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* Feedback: loss and constraint values of a round. */

static PyObject *feedback_round(Feedback *w, void *closure) {
    (void)closure;
    return PyLong_FromLongLong(w->round);
}

static PyObject *feedback_loss(Feedback *w, void *closure) {
    (void)closure;
    return PyFloat_FromDouble(w->values[0]);
}

static PyObject *feedback_constraints(Feedback *w, void *closure) {
    (void)closure;
    return vector_of(w->values + 1, w->constraints);
}

static PyObject *feedback_equalities(Feedback *w, void *closure) {
    (void)closure;
    return vector_of(w->values + 1 + w->constraints, w->equalities);
}

static PyObject *feedback_violation(Feedback *w, void *closure) {
    (void)closure;
    const Py_ssize_t count = w->constraints + w->equalities;
    PyObject *array = vector_of(w->values + 1, count);
    if (array) {
        double *v = PyArray_DATA((PyArrayObject *)array);
        for (Py_ssize_t k = 0; k < count; ++k) {
            v[k] = k >= w->constraints && v[k] < 0 ? -v[k] : k < w->constraints && v[k] <= 0 ? 0.0 : v[k];
        }
    }
    return array;
}

/* An array of this form, or a number where it has no axes. */
static PyObject *value_of(const Form *form, const void *entries) {
    PyObject *array = array_of(form, entries);
    return array ? PyArray_Return((PyArrayObject *)array) : NULL;
}

/* A dict of inputs of these forms by name, from their entries side by side in words of eight bytes. */
static PyObject *data_of(PyObject *rows, const double *from) {
    PyObject *all = PyDict_New();
    for (Py_ssize_t k = 0; all && k < PyTuple_GET_SIZE(rows); ++k) {
        Form form = {0};
        PyObject *one = read_form(&form, PyTuple_GET_ITEM(rows, k)) < 0 ? NULL : value_of(&form, from);
        if (!one || PyDict_SetItem(all, form.name, one) < 0) {
            Py_CLEAR(all);
        }
        Py_XDECREF(one);
        from += size_of(&form);
        Py_XDECREF(form.name);
        Py_XDECREF(form.names);
    }
    return all;
}

static PyObject *feedback_values(Feedback *w, void *closure) {
    (void)closure;
    if (!w->rows) {
        PyErr_SetString(PyExc_AttributeError, "values");
        return NULL;
    }
    if (!w->data) {
        w->data = data_of(w->rows, w->values + 1 + w->constraints + w->equalities);
    }
    return Py_XNewRef(w->data);
}

static PyGetSetDef feedback_members[] = {
    {"round", (getter)feedback_round, NULL, "The round that was played.", NULL},
    {"number", (getter)feedback_round, NULL, "The round among those of all learners in turn: a learner alone has no others.", NULL},
    {"values", (getter)feedback_values, NULL, "Data of the round by name, of models with contexts or states.", NULL},
    {"loss", (getter)feedback_loss, NULL, "f_t(x_t).", NULL},
    {"constraints", (getter)feedback_constraints, NULL, "g_t(x_t), shape (N,).", NULL},
    {"equalities", (getter)feedback_equalities, NULL, "h_t(x_t), shape (M,).", NULL},
    {"violation", (getter)feedback_violation, NULL, "[g_t(x_t)]_+, then |h_t(x_t)|, shape (N + M,).", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyObject *feedback_repr(Feedback *w) {
    char *loss = PyOS_double_to_string(w->values[0], 'g', 6, 0, NULL);
    PyObject *violation = feedback_violation(w, NULL), *text = NULL;
    if (loss && violation) {
        text = PyUnicode_FromFormat("Feedback(round=%lld, loss=%s, violation=%S)", (long long)w->round, loss, violation);
    }
    Py_XDECREF(violation);
    PyMem_Free(loss);
    return text;
}

/* Its numbers, as a Feedback of Python: another process has no program of this learner. */
static PyObject *feedback_reduce(Feedback *w, PyObject *ignored) {
    (void)ignored;
    PyObject *module = PyImport_ImportModule("oco.backends.feedback");
    PyObject *carried = module ? PyObject_GetAttrString(module, "carried") : NULL;
    Py_XDECREF(module);
    if (!carried) {
        return NULL;
    }
    PyObject *g = feedback_constraints(w, NULL), *h = feedback_equalities(w, NULL);
    PyObject *data = w->rows ? feedback_values(w, NULL) : PyDict_New();
    return Py_BuildValue("(N(LN()(dNN)))", carried, (long long)w->round, data, w->values[0], g, h);
}

static PyMethodDef feedback_methods[] = {
    {"__reduce__", (PyCFunction)feedback_reduce, METH_NOARGS, "Recipe of the numbers, for pickle and copy."},
    {NULL, NULL, 0, NULL},
};

static void feedback_dealloc(Feedback *w) {
    Py_XDECREF(w->rows);
    Py_XDECREF(w->data);
    PyObject_Free(w);
}

static PyTypeObject FeedbackType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "oco.backends.Feedback",
    .tp_basicsize = sizeof(Feedback),
    .tp_itemsize = 0,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Loss and constraint values of a round.",
    .tp_dealloc = (destructor)feedback_dealloc,
    .tp_getset = feedback_members,
    .tp_methods = feedback_methods,
    .tp_repr = (reprfunc)feedback_repr,
};

/* Feedback of this round; its loss and the values of its constraints are still to be written. */
static Feedback *new_feedback(const Stepper *s, const void *const *inputs) {
    const Py_ssize_t measured = 1 + s->constraints + s->equalities;
    Feedback *w = PyObject_Malloc(sizeof(Feedback) + ((size_t)measured + (s->tells ? s->words : 0)) * sizeof(double));
    if (!w) {
        PyErr_NoMemory();
        return NULL;
    }
    PyObject_Init((PyObject *)w, &FeedbackType);
    w->round = *s->round;
    w->rows = s->tells ? Py_NewRef(s->rows) : NULL;
    w->data = NULL;
    w->constraints = s->constraints;
    w->equalities = s->equalities;
    double *to = w->values + measured;
    for (int k = 0; s->tells && k < s->inputs; ++k) {
        const size_t size = size_of(s->forms + k);
        memcpy(to, inputs[k], size * sizeof(double));
        to += size;
    }
    return w;
}

/* Stepper */

static bool at_horizon(const Stepper *s) {
    return s->horizon >= 0 && (*s->round == s->horizon || *s->round == s->horizon + 1);
}

/* The random arrays of this round, once: the numbers that the learner's Generator would give. */
static const void *const *drawn(Stepper *s) {
    if (s->drawn != *s->round) {
        for (int k = 0; k < s->draws; ++k) {
            double *to = (double *)s->places[k];
            if (s->kinds[k].normal) {
                random_standard_normal_fill(s->bits, s->kinds[k].size, to);
            } else {
                random_standard_uniform_fill(s->bits, s->kinds[k].size, to);
            }
        }
        s->drawn = *s->round;
    }
    return s->places;
}

/* A number of Python in a word of this type; false for anything else. */
static bool put_number(int type, PyObject *value, double *number) {
    if (type == NPY_DOUBLE && PyFloat_Check(value)) {
        *number = PyFloat_AS_DOUBLE(value);
        return true;
    }
    if (!PyLong_CheckExact(value)) {
        return false;
    }
    int over = 0;
    const int64_t whole = PyLong_AsLongLongAndOverflow(value, &over);
    if (over || (type == NPY_DOUBLE && (whole > INT64_C(1) << 53 || whole < -(INT64_C(1) << 53)))) {
        return false;
    }
    if (type == NPY_DOUBLE) {
        *number = (double)whole;
    } else {
        memcpy(number, &whole, sizeof whole);
    }
    return true;
}

/* The numbers of nested lists of a form's shape from an axis on, or of dicts by the names of an axis that hold them, side by side: the place
 * behind them, NULL where they are no such lists and dicts. */
static double *put_nested(const Form *form, int axis, PyObject *axes, PyObject *value, double *to) {
    const bool list = PyList_CheckExact(value) || PyTuple_CheckExact(value);
    PyObject *names = axes == Py_None ? Py_None : PyTuple_GET_ITEM(axes, axis);
    if (list ? PySequence_Fast_GET_SIZE(value) != form->shape[axis]
             : names == Py_None || !PyDict_CheckExact(value) || PyDict_GET_SIZE(value) != form->shape[axis]) {
        return NULL;
    }
    for (npy_intp k = 0; to && k < form->shape[axis]; ++k) {
        PyObject *item = list ? PySequence_Fast_GET_ITEM(value, k) : PyDict_GetItem(value, PyTuple_GET_ITEM(names, k));
        if (!item) {
            return NULL;
        }
        if (axis + 1 < form->axes) {
            to = put_nested(form, axis + 1, list ? Py_None : axes, item, to); /* lists hold no dicts */
        } else {
            to = put_number(form->type, item, to) ? to + 1 : NULL;
        }
    }
    return to;
}

/* Where the entries of an input lie, if it is plain; numbers are put into `number`. */
static const void *plain(const Form *form, PyObject *value, double *number) {
    if (PyArray_CheckExact(value)) {
        PyArrayObject *array = (PyArrayObject *)value;
        if (PyArray_TYPE(array) != form->type || PyArray_NDIM(array) != form->axes || !PyArray_IS_C_CONTIGUOUS(array) ||
            !PyArray_ISALIGNED(array) || !PyArray_ISNOTSWAPPED(array)) {
            return NULL;
        }
        for (int k = 0; k < form->axes; ++k) {
            if (PyArray_DIMS(array)[k] != form->shape[k]) {
                return NULL;
            }
        }
        return PyArray_DATA(array);
    }
    if (form->axes > 0) {
        return put_nested(form, 0, form->names, value, form->copy) ? form->copy : NULL;
    }
    if (form->type == NPY_INT64 && PyArray_IsScalar(value, Int64)) { /* a row of an array */
        *(int64_t *)(void *)number = PyArrayScalar_VAL(value, Int64);
        return number;
    }
    return put_number(form->type, value, number) ? number : NULL;
}

/* Names in the caller's source are one object with ours; others are compared by their letters. */
static bool is_name(PyObject *given, PyObject *name) {
    return given == name || PyUnicode_Compare(given, name) == 0;
}

/* Pointers to inputs in their order, to contexts `only` or to all: how many of them the caller gave; -1 if one is not plain, or anything
 * else is given. Contexts that are left out are those that were taken. */
static int gathered(Stepper *s, PyObject *const *args, PyObject *names, bool only, const void **inputs, double *numbers) {
    const Py_ssize_t given = names ? PyTuple_GET_SIZE(names) : 0;
    int found = 0;
    for (int k = 0; k < s->inputs; ++k) {
        const Form *form = s->forms + k;
        if (only && !form->kept) {
            continue;
        }
        if (form->left) {
            inputs[k] = memcpy(form->copy, form->left, size_of(form) * sizeof(double)); /* the step overwrites it */
            continue;
        }
        Py_ssize_t at = found; /* names mostly come in the model's order */
        if (at >= given || !is_name(PyTuple_GET_ITEM(names, at), form->name)) {
            for (at = 0; at < given && !is_name(PyTuple_GET_ITEM(names, at), form->name); ++at) {
            }
        }
        if (at == given && !form->kept) {
            return -1;
        }
        inputs[k] = at == given ? form->kept : plain(form, args[at], numbers + k);
        if (!inputs[k]) {
            return -1;
        }
        found += at < given;
    }
    return found == given ? found : -1;
}

/* Whether a context has the entries that were taken in this round. */
static bool is_kept(const Form *form, const void *value) {
    return memcmp(value, form->kept, size_of(form) * sizeof(double)) == 0;
}

/* Pointers to all inputs of the round that was decided; false if one is not plain, or a context another one than was decided with. */
static bool revealed(Stepper *s, PyObject *const *args, PyObject *names, const void **inputs, double *numbers) {
    if ((s->context != Py_None && s->known != *s->round) || gathered(s, args, names, false, inputs, numbers) < 0) {
        return false;
    }
    for (int k = 0; s->contexts && k < s->inputs; ++k) {
        const Form *form = s->forms + k;
        if (form->kept && inputs[k] != form->kept && !is_kept(form, inputs[k])) {
            return false;
        }
    }
    return true;
}

static bool within(const Form *form, const void *value) {
    for (size_t k = 0, size = size_of(form); k < size; ++k) {
        const double entry = form->type == NPY_DOUBLE ? ((const double *)value)[k] : (double)((const int64_t *)value)[k];
        if (!(form->lower[k] <= entry && entry <= form->upper[k])) {
            return false;
        }
    }
    return true;
}

/* Whether the contexts of this round are taken, now or before: false where they are not plain, missing, or others than before. */
static bool knows(Stepper *s, PyObject *const *args, PyObject *names) {
    const void **inputs = s->entries;
    double *numbers = s->single;
    if (s->context == Py_None) {
        return !names;
    }
    if (!names && (s->contexts || s->known == *s->round)) {
        return s->known == *s->round;
    }
    if (gathered(s, args, names, true, inputs, numbers) != s->contexts) {
        return false;
    }
    const bool before = s->known == *s->round;
    for (int k = 0; k < s->inputs; ++k) {
        const Form *form = s->forms + k;
        if (form->kept && !(before ? is_kept(form, inputs[k]) : within(form, inputs[k]))) {
            return false;
        }
    }
    if (before) {
        return true;
    }
    memcpy(s->before, s->self, s->size);
    if (s->prepare && s->prepare(s->self, inputs) != 0) {
        return false; /* nothing is changed */
    }
    for (int k = 0; k < s->inputs; ++k) {
        if (s->forms[k].kept) {
            memcpy(s->forms[k].kept, inputs[k], size_of(s->forms + k) * sizeof(double));
        }
    }
    s->known = *s->round;
    return true;
}

/* New array for a decision, whose entries have names where the model gives them. */
static PyObject *decision_of(const Stepper *s, const Form *form) {
    if (form->names == Py_None) {
        return PyArray_SimpleNew(form->axes, form->shape, form->type);
    }
    PyObject *array = PyArray_New(s->named, form->axes, form->shape, form->type, NULL, NULL, 0, 0, NULL);
    if (array && PyObject_SetAttrString(array, "axes", form->names) < 0) {
        Py_CLEAR(array);
    }
    return array;
}

static PyObject *stepper_decide(Stepper *s, PyObject *const *args, Py_ssize_t given, PyObject *names) {
    const Form *forms = s->forms + s->inputs;
    const int64_t known = s->known;
    const bool usual = !given && !s->busy && !at_horizon(s) && knows(s, args, names), alone = usual && s->decisions == 1;
    PyObject *only = alone ? decision_of(s, forms) : NULL;
    if (alone && !only) {
        return NULL;
    }
    double *to = only && s->held ? PyArray_DATA((PyArrayObject *)only) : s->space; /* what `observe` does not need is written where it goes */
    if (!usual || s->decide(s->self, drawn(s), to) != 0) {
        Py_XDECREF(only);
        if (usual && s->known != known) { /* contexts of a decision that failed are not taken */
            memcpy(s->self, s->before, s->size);
            s->known = 0;
        }
        return PyObject_Vectorcall(s->slow_decide, args, given, names); /* which says what is wrong with arguments */
    }
    s->answered = *s->round;
    s->spaced = s->held ? 0 : s->answered;
    if (only) {
        if (!s->held) {
            memcpy(PyArray_DATA((PyArrayObject *)only), s->space, size_of(forms) * sizeof(double));
        }
        return only;
    }
    PyObject *all = PyDict_New();
    const double *from = s->space;
    for (int k = 0; all && k < s->decisions; ++k) {
        PyObject *one = decision_of(s, forms + k);
        if (one) {
            memcpy(PyArray_DATA((PyArrayObject *)one), from, size_of(forms + k) * sizeof(double));
        }
        if (!one || PyDict_SetItem(all, forms[k].name, one) < 0) {
            Py_CLEAR(all);
        }
        Py_XDECREF(one);
        from += size_of(forms + k);
    }
    return all;
}

/* As in monitor.py. */
static bool is_watched(int64_t round) {
    return round >= 64 && ((round & (round - 1)) == 0 || (round & 8191) == 0);
}

/* A tuple of arrays and numbers of these forms. */
static PyObject *tuple_of(const Form *forms, int count, const void *const *entries) {
    PyObject *all = PyTuple_New(count);
    for (int k = 0; all && k < count; ++k) {
        PyObject *one = value_of(forms + k, entries[k]);
        if (one) {
            PyTuple_SET_ITEM(all, k, one);
        } else {
            Py_CLEAR(all);
        }
    }
    return all;
}

/* Let the learner look at itself after a round: -1 where Python raised. */
static int look(Stepper *s, Feedback *w, const void *const *inputs) {
    const void **decisions = s->entries + s->inputs;
    const double *from = s->space;
    for (int k = 0; k < s->decisions; ++k) {
        decisions[k] = from;
        from += size_of(s->forms + s->inputs + k);
    }
    PyObject *decided = tuple_of(s->forms + s->inputs, s->decisions, decisions);
    PyObject *values = decided ? tuple_of(s->forms, s->inputs, inputs) : NULL;
    PyObject *done = values ? PyObject_CallFunctionObjArgs(s->look, (PyObject *)w, decided, values, NULL) : NULL;
    Py_XDECREF(decided);
    Py_XDECREF(values);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static PyObject *stepper_observe(Stepper *s, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    const void **inputs = s->entries;
    double *numbers = s->single;
    const int64_t round = *s->round;
    if (s->busy || s->answered != round || at_horizon(s) || count || !revealed(s, args, names, inputs, numbers)) {
        return PyObject_Vectorcall(s->slow_observe, args, (size_t)count, names);
    }
    const void *const *draws = drawn(s);
    if ((s->held ? is_watched(round) : s->spaced != round) && s->decide(s->self, draws, s->space) != 0) {
        return PyObject_Vectorcall(s->slow_observe, args, (size_t)count, names);
    }
    Feedback *w = new_feedback(s, inputs);
    if (!w) {
        return NULL;
    }
    if (s->measure(s->self, s->space, inputs, w->values) != 0 || s->observe(s->self, inputs, draws) != 0) {
        Py_DECREF(w);
        return PyObject_Vectorcall(s->slow_observe, args, (size_t)count, names);
    }
    if (is_watched(round) && look(s, w, inputs) < 0) {
        Py_CLEAR(w);
    }
    return (PyObject *)w;
}

static void stepper_dealloc(Stepper *s) {
    PyObject_GC_UnTrack(s);
    for (int k = 0; s->forms && k < s->inputs + s->decisions; ++k) {
        Py_XDECREF(s->forms[k].name);
        Py_XDECREF(s->forms[k].names);
    }
    PyMem_Free(s->forms);
    PyMem_Free((void *)s->entries);
    PyMem_Free(s->single);
    PyMem_Free(s->kinds);
    PyMem_Free((void *)s->places);
    PyMem_Free(s->space);
    Py_XDECREF(s->memory);
    Py_XDECREF(s->context);
    Py_XDECREF(s->numbers);
    Py_XDECREF(s->random);
    Py_XDECREF(s->named);
    Py_XDECREF(s->rows);
    Py_XDECREF(s->slow_decide);
    Py_XDECREF(s->slow_observe);
    Py_XDECREF(s->look);
    PyObject_GC_Del(s);
}

static int stepper_traverse(Stepper *s, visitproc visit, void *arg) {
    Py_VISIT(s->memory);
    Py_VISIT(s->slow_decide);
    Py_VISIT(s->slow_observe);
    Py_VISIT(s->look);
    return 0;
}

static int stepper_clear(Stepper *s) {
    Py_CLEAR(s->slow_decide);
    Py_CLEAR(s->slow_observe);
    Py_CLEAR(s->look);
    return 0;
}

/* Where contexts lie, from arrays (entries, lower, upper, struct before, flags of the inputs that are contexts); none from None. */
static int read_context(Stepper *s, PyObject *context) {
    PyArrayObject *kept, *lower, *upper, *before;
    PyObject *flags;
    s->context = Py_NewRef(context);
    if (context == Py_None) {
        return 0;
    }
    if (!PyArg_ParseTuple(context, "O!O!O!O!O!", &PyArray_Type, &kept, &PyArray_Type, &lower, &PyArray_Type, &upper, &PyArray_Type,
                          &before, &PyTuple_Type, &flags)) {
        return -1;
    }
    s->before = PyArray_DATA(before);
    s->size = (size_t)PyArray_NBYTES(before);
    size_t place = 0;
    for (int k = 0; k < s->inputs; ++k) {
        Form *form = s->forms + k;
        if (PyTuple_GET_ITEM(flags, k) == Py_True) {
            form->kept = (double *)PyArray_DATA(kept) + place;
            form->lower = (const double *)PyArray_DATA(lower) + place;
            form->upper = (const double *)PyArray_DATA(upper) + place;
            place += size_of(form);
            ++s->contexts;
        }
    }
    return 0;
}

/* Where the random arrays lie, from (size, normal) each. */
static int read_draws(Stepper *s, PyObject *rows, PyObject *numbers, PyObject *random) {
    double *next = PyArray_DATA((PyArrayObject *)numbers);
    const size_t count = (size_t)PyTuple_GET_SIZE(rows);
    s->kinds = PyMem_Calloc(count + 1, sizeof(Draw));
    s->places = (const void **)PyMem_Calloc(count + 1, sizeof(void *));
    if (!s->kinds || !s->places) {
        PyErr_NoMemory();
        return -1;
    }
    s->draws = (int)count;
    for (int k = 0; k < s->draws; ++k) {
        int normal;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(rows, k), "np", &s->kinds[k].size, &normal)) {
            return -1;
        }
        s->kinds[k].normal = normal;
        s->places[k] = next;
        next += s->kinds[k].size;
    }
    PyObject *capsule = PyObject_GetAttrString(random, "capsule");
    s->bits = capsule ? PyCapsule_GetPointer(capsule, "BitGenerator") : NULL;
    Py_XDECREF(capsule);
    return s->bits ? 0 : -1;
}

static PyObject *stepper_new(PyTypeObject *type, PyObject *args, PyObject *options) {
    (void)options;
    PyObject *memory, *slow_decide, *slow_observe, *look, *inputs, *decisions, *draws, *numbers, *random, *named, *context, *left;
    unsigned long long decide, observe, measure, prepare;
    long long horizon;
    Py_ssize_t constraints, equalities;
    int held;
    if (!PyArg_ParseTuple(args, "O!OOOKKKKO!O!LnnO!O!OO!pOO!", &PyArray_Type, &memory, &slow_decide, &slow_observe, &look, &decide, &observe,
                          &measure, &prepare, &PyTuple_Type, &inputs, &PyTuple_Type, &decisions, &horizon, &constraints, &equalities,
                          &PyTuple_Type, &draws, &PyArray_Type, &numbers, &random, &PyType_Type, &named, &held, &context, &PyTuple_Type,
                          &left)) {
        return NULL;
    }
    Stepper *s = (Stepper *)type->tp_alloc(type, 0);
    if (!s) {
        return NULL;
    }
    s->memory = Py_NewRef(memory);
    s->numbers = Py_NewRef(numbers);
    s->random = Py_NewRef(random);
    s->named = (PyTypeObject *)Py_NewRef(named);
    s->rows = Py_NewRef(inputs);
    if (read_draws(s, draws, numbers, random) < 0) {
        Py_DECREF(s);
        return NULL;
    }
    s->slow_decide = Py_NewRef(slow_decide);
    s->slow_observe = Py_NewRef(slow_observe);
    s->look = Py_NewRef(look);
    s->self = PyArray_DATA((PyArrayObject *)memory);
    s->round = s->self;
    s->horizon = horizon;
    s->held = held;
    s->decide = (decide_function)(uintptr_t)decide;
    s->observe = (observe_function)(uintptr_t)observe;
    s->measure = (measure_function)(uintptr_t)measure;
    s->prepare = (prepare_function)(uintptr_t)prepare;
    s->constraints = constraints;
    s->equalities = equalities;
    int rows = (int)(PyTuple_GET_SIZE(inputs) + PyTuple_GET_SIZE(decisions));
    s->forms = PyMem_Calloc((size_t)rows, sizeof(Form));
    s->entries = (const void **)PyMem_Calloc((size_t)rows, sizeof(void *));
    s->single = PyMem_Calloc((size_t)rows, sizeof(double));
    s->inputs = (int)PyTuple_GET_SIZE(inputs);
    s->decisions = (int)PyTuple_GET_SIZE(decisions);
    size_t size = 0; /* of decisions and inputs */
    for (int k = 0; s->forms && k < rows; ++k) {
        PyObject *row = k < s->inputs ? PyTuple_GET_ITEM(inputs, k) : PyTuple_GET_ITEM(decisions, k - s->inputs);
        if (read_form(s->forms + k, row) < 0) {
            Py_DECREF(s);
            return NULL;
        }
        size += size_of(s->forms + k);
        s->words += k < s->inputs ? size_of(s->forms + k) : 0;
    }
    s->space = PyMem_Malloc((size + 1) * sizeof(double));
    if (!s->forms || !s->entries || !s->single || !s->space) {
        Py_DECREF(s);
        return PyErr_NoMemory();
    }
    for (int k = 0; k < s->inputs; ++k) {
        size -= size_of(s->forms + k); /* the last inputs' places come first, behind the decisions */
        s->forms[k].copy = s->space + size;
    }
    if (read_context(s, context) < 0) {
        Py_DECREF(s);
        return NULL;
    }
    s->tells = s->contexts > 0;
    for (int k = 0; k < s->inputs; ++k) {
        PyObject *place = PyTuple_GET_ITEM(left, k);
        s->forms[k].left = place == Py_None ? NULL : PyArray_DATA((PyArrayObject *)place);
        s->tells = s->tells || s->forms[k].left;
    }
    return (PyObject *)s;
}

static PyMethodDef stepper_methods[] = {
    {"decide", (PyCFunction)(void (*)(void))stepper_decide, METH_FASTCALL | METH_KEYWORDS,
     "The decision of this round; a dict of several."},
    {"observe", (PyCFunction)(void (*)(void))stepper_observe, METH_FASTCALL | METH_KEYWORDS,
     "Take what the round revealed and go on to the next."},
    {NULL, NULL, 0, NULL},
};

static PyObject *stepper_busy(Stepper *s, void *closure) {
    (void)closure;
    return PyBool_FromLong(s->busy);
}

/* Who sets it may change the state, so that what was decided is worked out anew. */
static int stepper_set_busy(Stepper *s, PyObject *value, void *closure) {
    (void)closure;
    const int busy = value ? PyObject_IsTrue(value) : 0;
    if (busy < 0) {
        return -1;
    }
    s->busy = (char)busy;
    s->spaced = 0;
    return 0;
}

static PyGetSetDef stepper_getters[] = {
    {"busy", (getter)stepper_busy, (setter)stepper_set_busy, "Whether every call goes through Python.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef stepper_members[] = {
    {"answered", T_LONGLONG, offsetof(Stepper, answered), 0, "The last round that was decided."},
    {"drawn", T_LONGLONG, offsetof(Stepper, drawn), 0, "The round whose random arrays are drawn."},
    {"known", T_LONGLONG, offsetof(Stepper, known), 0, "The round whose contexts were taken."},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject StepperType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "oco_stepper.Stepper",
    .tp_basicsize = sizeof(Stepper),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "A compiled learner, round by round.",
    .tp_new = stepper_new,
    .tp_dealloc = (destructor)stepper_dealloc,
    .tp_traverse = (traverseproc)stepper_traverse,
    .tp_clear = (inquiry)stepper_clear,
    .tp_methods = stepper_methods,
    .tp_members = stepper_members,
    .tp_getset = stepper_getters,
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "oco_stepper", NULL, -1, NULL, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_oco_stepper(void) {
    import_array();
    if (PyType_Ready(&FeedbackType) < 0 || PyType_Ready(&StepperType) < 0) {
        return NULL;
    }
    PyObject *m = PyModule_Create(&module);
    if (m && PyModule_AddObjectRef(m, "Stepper", (PyObject *)&StepperType) < 0) {
        Py_CLEAR(m);
    }
    return m;
}
