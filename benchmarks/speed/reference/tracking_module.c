/* The rule of tracking.c as an extension module of Python, written by hand: one learner, four checked arrays in, the loss and the next
   decision out. Numbers within the arrays are not checked. */
#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>

#include "tracking.c"

static double T, x[D], Q[N];
static int64_t t;

static PyObject *begin(PyObject *module, PyObject *horizon) {
    (void)module;
    T = PyFloat_AsDouble(horizon);
    t = 0;
    for (int j = 0; j < D; ++j) {
        x[j] = 2.5;
    }
    Q[0] = Q[1] = T / 2;
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyObject *decide(PyObject *module, PyObject *ignored) {
    (void)module;
    (void)ignored;
    npy_intp shape = D;
    PyObject *array = PyArray_SimpleNew(1, &shape, NPY_DOUBLE);
    if (array) {
        memcpy(PyArray_DATA((PyArrayObject *)array), x, sizeof x);
    }
    return array;
}

/* The entries of an array of this shape; columns = 0: a vector. */
static const double *entries(PyObject *given, npy_intp rows, npy_intp columns) {
    PyArrayObject *array = (PyArrayObject *)given;
    if (PyArray_CheckExact(given) && PyArray_TYPE(array) == NPY_DOUBLE && PyArray_ISCARRAY_RO(array) && PyArray_NDIM(array) == (columns ? 2 : 1) &&
        PyArray_DIM(array, 0) == rows && (columns == 0 || PyArray_DIM(array, 1) == columns)) {
        return PyArray_DATA(array);
    }
    PyErr_SetString(PyExc_ValueError, "another shape or kind");
    return NULL;
}

static PyObject *observe(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    const double *H, *noise, *A, *b;
    if (count != 4 || !(H = entries(args[0], M, D)) || !(noise = entries(args[1], M, 0)) || !(A = entries(args[2], N, D)) ||
        !(b = entries(args[3], N, 0))) {
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "four arrays");
    }
    double loss = 0;
    for (int i = 0; i < M; ++i) {
        double r = -noise[i];
        for (int j = 0; j < D; ++j) {
            r += H[i * D + j] * (x[j] - 1);
        }
        loss += r * r / 2;
    }
    play(t++, T, H, noise, A, b, x, Q);
    return PyFloat_FromDouble(loss);
}

static PyMethodDef methods[] = {
    {"begin", begin, METH_O, NULL},
    {"decide", decide, METH_NOARGS, NULL},
    {"observe", (PyCFunction)(void (*)(void))observe, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "tracking_module", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_tracking_module(void) {
    import_array();
    return PyModule_Create(&definition);
}
