/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's stock of random bytes: ChaCha12 with fast key erasure. */
#include "base/random.h"

#include "base/memory.h"

#define ROUNDS   12u   /* what general purpose generators use; 20 would cost half a lookup more */
#define FILLINGS 1024u /* about half a megabyte, then a new key */

/* The same word of four blocks: the compiler makes one instruction of an operation on all. */
typedef uint32_t lanes __attribute__((vector_size(4 * ADMI_CHACHA_LANES)));

static inline lanes rotate(lanes word, uint32_t by)
{
    return word << by | word >> (32 - by);
}

static inline void quarter_round(lanes *a, lanes *b, lanes *c, lanes *d)
{
    *a += *b;
    *d = rotate(*d ^ *a, 16);
    *c += *d;
    *b = rotate(*b ^ *c, 12);
    *a += *b;
    *d = rotate(*d ^ *a, 8);
    *c += *d;
    *b = rotate(*b ^ *c, 7);
}

static lanes same(uint32_t word)
{
    return (lanes){ word, word, word, word };
}

void admi_chacha(const uint32_t key[8], uint32_t counter, uint32_t rounds,
                 uint32_t out[ADMI_CHACHA_LANES][16])
{
    const lanes counters = same(counter) + (lanes){ 0, 1, 2, 3 };
    lanes x[16],
        from[16] = { same(0x61707865), same(0x3320646e), same(0x79622d32), same(0x6b206574),
                     same(key[0]),     same(key[1]),     same(key[2]),     same(key[3]),
                     same(key[4]),     same(key[5]),     same(key[6]),     same(key[7]),
                     counters,         same(0),          same(0),          same(0) };

    for (uint32_t i = 0; i < 16; i++)
        x[i] = from[i];
    for (uint32_t round = 0; round < rounds; round += 2) {
        quarter_round(&x[0], &x[4], &x[8], &x[12]);
        quarter_round(&x[1], &x[5], &x[9], &x[13]);
        quarter_round(&x[2], &x[6], &x[10], &x[14]);
        quarter_round(&x[3], &x[7], &x[11], &x[15]);
        quarter_round(&x[0], &x[5], &x[10], &x[15]);
        quarter_round(&x[1], &x[6], &x[11], &x[12]);
        quarter_round(&x[2], &x[7], &x[8], &x[13]);
        quarter_round(&x[3], &x[4], &x[9], &x[14]);
    }
    for (uint32_t i = 0; i < 16; i++) {
        lanes word = x[i] + from[i];

        for (uint32_t lane = 0; lane < ADMI_CHACHA_LANES; lane++)
            out[lane][i] = word[lane];
    }
}

static int32_t fill(struct admi_random_stock *stock, const struct adm_random *source, int anew)
{
    uint32_t blocks[2 * ADMI_CHACHA_LANES][16];

    if (anew || stock->fillings == 0) {
        stock->fillings = 0; /* a source that fails may have spoilt the key */
        if (source->fill(source->self, stock->key, sizeof stock->key) != 0)
            return -1;
        stock->fillings = FILLINGS;
    }
    stock->fillings--;
    admi_chacha(stock->key, 0, ROUNDS, blocks);
    admi_chacha(stock->key, ADMI_CHACHA_LANES, ROUNDS, blocks + ADMI_CHACHA_LANES);
    _Static_assert(sizeof blocks == sizeof stock->bytes, "all of them are used");
    admi_copy(stock->bytes, blocks, sizeof stock->bytes);
    /* The first bytes are the next key, and nobody else gets them. */
    admi_copy(stock->key, stock->bytes, sizeof stock->key);
    admi_clear(stock->bytes, sizeof stock->key);
    stock->left = sizeof stock->bytes - sizeof stock->key;
    return 0;
}

int32_t admi_random_draw(struct admi_random_stock *stock, const struct adm_random *source, int anew,
                         struct adm_id *out)
{
    if ((anew || stock->left < sizeof *out) && fill(stock, source, anew) != 0)
        return -1;
    uint8_t *at = stock->bytes + sizeof stock->bytes - stock->left;

    admi_copy(out, at, sizeof *out);
    admi_clear(at, sizeof *out);
    stock->left -= (uint32_t)sizeof *out;
    return 0;
}
