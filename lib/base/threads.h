/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One block of memory per thread and registry, found without a lock after a thread's first call.
 * Blocks outlive their thread (what it counted stays counted) and are handed to the next new
 * thread.
 */
#ifndef ADMI_THREADS_H
#define ADMI_THREADS_H

#include <admit/admit.h>

struct admi_threads;

/* block_bytes: size of each block, zeroed when it is first handed out; blocks are aligned to 128
 * bytes. */
adm_status admi_threads_new(const struct adm_allocator *allocator, uint64_t block_bytes,
                            struct admi_threads **out);
/* release, if not NULL, is called for each block before it is freed. No thread may be inside a
 * block any more. */
void admi_threads_free(struct admi_threads *threads, void (*release)(void *self, void *block),
                       void *self);

/* The calling thread: what it knows of all registries. For the time of a call, because reaching
 * thread-local storage from a shared library costs as much as a look-up. */
struct admi_thread {
    uint32_t callback_depth; /* it is inside a backend call or an event callback (law K9) */
};
struct admi_thread *admi_this_thread(void);

/* This thread's block; NULL: no memory for a new one. */
void *admi_threads_local(struct admi_threads *threads);
/* The same for whoever has asked for the thread already. */
void *admi_threads_local_of(struct admi_threads *threads, struct admi_thread *self);

/* Visit every block ever handed out. Others may be writing to their blocks meanwhile. visit runs
 * under a lock: it must not allocate, nor call into this registry. */
void admi_threads_each(struct admi_threads *threads, void (*visit)(void *self, void *block),
                       void *self);

/* A lock for the registry's owner, of whom the registry itself knows nothing. It is free in a
 * forked child whoever held it in the parent. Under it: admi_threads_each() may be called,
 * admi_threads_local() and admi_threads_free() not. */
void admi_threads_lock(struct admi_threads *threads);
void admi_threads_unlock(struct admi_threads *threads);

/* The calling thread goes inside, comes out again; is it inside? */
void admi_enter_callback(void);
void admi_leave_callback(void);
int admi_inside_callback(void);

#endif
