/* SPDX-License-Identifier: Apache-2.0 */
/* A replay over time: what was counted in each of some 100 bins, and a picture of it. */
#ifndef CLI_REPLAY_PLOT_H
#define CLI_REPLAY_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct replay;

/* What one rule counted up to the end of a bin. */
struct plot_sample {
    uint64_t requests[2], units[2]; /* denied, admitted */
    uint64_t shadow_denied;
    uint64_t held; /* of this bin alone: most in one partition */
};

struct replay_plot {
    uint64_t width_ns;
    size_t bins, closed;
    uint64_t (*verdicts)[2];     /* [bin]: denied, admitted up to its end */
    struct plot_sample *samples; /* [bin * rules + rule] */
};

/* After the trace was read. */
void plot_open(struct replay_plot *plot, const struct replay *replay);

/* Before an arrival at this moment, and with UINT64_MAX after the last end of service: bins that
 * have ended are closed. False after an error. */
bool plot_until(struct replay_plot *plot, struct replay *replay, uint64_t ns);
void plot_free(struct replay_plot *plot);

/* The picture, drawn by gnuplot. An exit code; errors are on stderr. */
int plot_draw(const struct replay_plot *plot, const struct replay *replay, const char *path);

#endif
