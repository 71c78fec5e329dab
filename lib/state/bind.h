/* SPDX-License-Identifier: Apache-2.0 */
/* A backend, bound: its table checked and completed once, so that nobody asks about a slot
 * afterwards. */
#ifndef ADMI_BIND_H
#define ADMI_BIND_H

#include <pthread.h>

#include <admit/backend.h>

struct admi_bound {
    struct adm_backend_ops ops; /* complete: no slot is NULL */
    void *self;
    struct adm_backend_info
        info;        /* as it was described at bind; threads and capabilities do not change */
    uint32_t serial; /* 1: one call at a time, under the mutex */
    uint32_t defers; /* 1: an op may complete later than start */
    pthread_mutex_t mutex;
};

/**
 * Bind a backend: from here on it belongs to *out, and on failure it has been closed, if its table
 * had a usable close. Errors ADM_E_INVALID_ARGUMENT no table; ADM_E_BACKEND_ABI its size, abi, name
 * or a required slot; what describe returned; ADM_E_BACKEND_RESULT described itself as what this
 * library does not know; ADM_E_OS.
 */
adm_status admi_backend_bind(const struct adm_backend *backend, struct admi_bound *out);

/* The calls. Each runs inside admi_enter_callback() (law K9), and alone if the backend is SERIAL.
 */
void admi_bound_start(struct admi_bound *bound, struct adm_op *op);
adm_status admi_bound_poll(struct admi_bound *bound, const struct adm_time *now);
void admi_bound_cancel(struct admi_bound *bound, struct adm_op *op);
adm_status admi_bound_watch(struct admi_bound *bound, struct adm_watch *out);
/* inout: size set; written within it. */
adm_status admi_bound_describe(struct admi_bound *bound, struct adm_backend_info *inout);
/* Once, last. */
void admi_bound_close(struct admi_bound *bound);

#endif
