/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread's stock of random bytes: much from few. The key comes from the source (the system), the
 * bytes from ChaCha with that key; each filling also makes the next key and forgets the old one, so
 * that the memory of a process never tells what it has handed out. Asking the source for every id
 * costs more than a whole decision.
 */
#ifndef ADMI_RANDOM_H
#define ADMI_RANDOM_H

#include <stdint.h>

#include <admit/admit.h>

#define ADMI_CHACHA_LANES 4u /* blocks that are made together */

struct admi_random_stock {
    uint32_t left;     /* bytes that are not handed out yet: the last ones */
    uint32_t fillings; /* that the key may still make before it is drawn from the source again */
    uint32_t key[8];
    uint8_t bytes[2 * ADMI_CHACHA_LANES * 64];
};

/* Two numbers that nobody can guess. anew: forget the stock and the key, which a forked child must
 * do, or two processes would hand out the same. 0 on success; else the source has failed. */
int32_t admi_random_draw(struct admi_random_stock *stock, const struct adm_random *source, int anew,
                         struct adm_id *out);

/* ChaCha (RFC 8439, nonce 0) with a number of rounds: four blocks from a counter on. */
void admi_chacha(const uint32_t key[8], uint32_t counter, uint32_t rounds,
                 uint32_t out[ADMI_CHACHA_LANES][16]);

#endif
