/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A replay over time. At the end of each bin the gate's own counters are read: the sum over the
 * bins is the total of the report by construction.
 */
#include "replay_plot.h"

#include "cli.h"
#include "gnuplot.h"
#include "replay.h"

#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#define BINS_MAX   150u
#define PANELS_MAX 12u
#define NOTE_COLUMNS 120u
#define NOTE_LINES   6u

#define ADMITTED "'#4477aa'"
#define DENIED   "'#ee6677'"
#define SHADOWED "'#ccbb44'"
#define LEVEL    "'#222222'"
#define LIMIT    "'#555555'"

/* ---- collecting ----------------------------------------------------------------------------- */

/* 1, 2, 5, 10 ... ms and round seconds, minutes, hours. */
static uint64_t round_width(uint64_t least_ns)
{
    static const uint64_t widths_ms[] = { 1,     2,     5,     10,    20,     50,     100,    200,
                                          500,   1000,  2000,  5000,  10000,  15000,  30000,  60000,
                                          120000, 300000, 600000, 900000, 1800000, 3600000,
                                          7200000, 21600000, 43200000, 86400000 };
    size_t count = sizeof widths_ms / sizeof widths_ms[0];

    for (size_t i = 0; i < count; i++)
        if (widths_ms[i] * ADM_MILLISECOND >= least_ns)
            return widths_ms[i] * ADM_MILLISECOND;
    return least_ns;
}

void plot_open(struct replay_plot *plot, const struct replay *replay)
{
    const struct trace_row *rows = replay->trace.rows;
    uint64_t length = rows[replay->trace.row_count - 1].at_ns - rows[0].at_ns;

    plot->width_ns = round_width(length / BINS_MAX + 1);
    plot->bins = (size_t)(length / plot->width_ns) + 1;
    plot->closed = 0;
    plot->verdicts = cli_allocate(plot->bins * sizeof *plot->verdicts);
    plot->samples = cli_allocate(plot->bins * replay->rule_count * sizeof *plot->samples);
}

void plot_free(struct replay_plot *plot)
{
    free(plot->verdicts);
    free(plot->samples);
}

static bool close_bin(struct replay_plot *plot, struct replay *replay)
{
    struct plot_sample *samples = plot->samples + plot->closed * replay->rule_count;

    if (!replay_count_rules(replay))
        return false;
    for (size_t i = 0; i < replay->rule_count; i++) {
        struct replay_rule *rule = &replay->rules[i];

        samples[i] = (struct plot_sample){
            .requests = { rule->denied, rule->admitted },
            .units = { rule->denied_units, rule->admitted_units },
            .shadow_denied = rule->shadow_denied,
            .held = rule->bin_peak,
        };
        rule->bin_peak = 0;
    }
    plot->verdicts[plot->closed][0] = replay->verdicts[0];
    plot->verdicts[plot->closed][1] = replay->verdicts[1];
    plot->closed++;
    return true;
}

bool plot_until(struct replay_plot *plot, struct replay *replay, uint64_t ns)
{
    uint64_t first = replay->first_ns;
    bool good = true;

    while (good && plot->closed < plot->bins &&
           (ns == UINT64_MAX || (ns - first) / plot->width_ns > plot->closed))
        good = close_bin(plot, replay);
    return good;
}

/* ---- which rules ---------------------------------------------------------------------------- */

/* 2: it denied, 1: something was counted, 0: nothing. */
static unsigned interest(const struct replay_rule *rule)
{
    if (rule->denied > 0 || rule->shadow_denied > 0)
        return 2;
    return rule->admitted > 0 || rule->admitted_units > 0 ? 1 : 0;
}

static size_t choose(const struct replay *replay, size_t panels[PANELS_MAX], bool *drawn)
{
    size_t count = 0;

    for (unsigned wanted = 2; wanted > 0; wanted--)
        for (size_t i = 0; i < replay->rule_count && count < PANELS_MAX; i++)
            if (interest(&replay->rules[i]) == wanted) {
                panels[count++] = i;
                drawn[i] = true;
            }
    return count;
}

/* ---- data ----------------------------------------------------------------------------------- */

struct axis {
    double per_second;
    const char *name;
};

static struct axis axis_of(const struct replay_plot *plot)
{
    double seconds = (double)plot->width_ns * (double)plot->bins / 1e9;

    if (seconds <= 600)
        return (struct axis){ 1, "seconds of the trace" };
    if (seconds <= 36000)
        return (struct axis){ 60, "minutes of the trace" };
    return (struct axis){ 3600, "hours of the trace" };
}

/* Middle of the bin, then what was counted in it: admitted, denied. */
static void write_row(FILE *out, const struct replay_plot *plot, size_t bin, uint64_t admitted,
                      uint64_t denied, uint64_t held)
{
    double width = (double)plot->width_ns / 1e9 / axis_of(plot).per_second;

    fprintf(out, "%.9g %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", ((double)bin + 0.5) * width,
            admitted, denied, held);
}

static void write_totals(FILE *out, const struct replay_plot *plot)
{
    uint64_t before[2] = { 0, 0 };

    fputs("$total << END\n", out);
    for (size_t bin = 0; bin < plot->closed; bin++) {
        const uint64_t *now = plot->verdicts[bin];

        write_row(out, plot, bin, now[1] - before[1], now[0] - before[0], 0);
        before[0] = now[0];
        before[1] = now[1];
    }
    fputs("END\n", out);
}

/* Denials for want of an amount have no units: then requests are drawn. */
static bool draws_requests(const struct replay_rule *rule)
{
    return strcmp(rule->unit, "requests") == 0 || strcmp(rule->type, "pressure") == 0 ||
           rule->shadow || (rule->denied > 0 && rule->denied_units == 0);
}

static void write_rule(FILE *out, const struct replay_plot *plot, const struct replay *replay,
                       size_t index)
{
    const struct replay_rule *rule = &replay->rules[index];
    struct plot_sample before = { .held = 0 };

    fprintf(out, "$rule%zu << END\n", index);
    for (size_t bin = 0; bin < plot->closed; bin++) {
        const struct plot_sample *now = &plot->samples[bin * replay->rule_count + index];

        if (rule->shadow)
            write_row(out, plot, bin, 0, now->shadow_denied - before.shadow_denied, 0);
        else if (draws_requests(rule))
            write_row(out, plot, bin, now->requests[1] - before.requests[1],
                      now->requests[0] - before.requests[0], now->held);
        else
            write_row(out, plot, bin, now->units[1] - before.units[1],
                      now->units[0] - before.units[0], now->held);
        before = *now;
    }
    fputs("END\n", out);
}

/* ---- panels --------------------------------------------------------------------------------- */

static void panel_title(FILE *out, const struct replay_rule *rule)
{
    char text[400];

    if (rule->shadow)
        snprintf(text, sizeof text, "%s: %s of %s, shadow: would have denied %" PRIu64 " requests",
                 rule->id, rule->type, rule->unit, rule->shadow_denied);
    else
        snprintf(text, sizeof text,
                 "%s: %s of %s, admitted %" PRIu64 " and denied %" PRIu64 " requests", rule->id,
                 rule->type, rule->unit, rule->admitted, rule->denied);
    fputs("set label 50 ", out);
    gnuplot_string(out, text);
    fputs(" at graph 0, graph 1.13 left font ',13'\n", out);
}

static void bars(FILE *out, const char *block, double seconds)
{
    fprintf(out,
            "plot %s using 1:(($2+$3)/%.9g) with boxes lc rgb " DENIED " title 'denied', \\\n"
            "  '' using 1:($2/%.9g) with boxes lc rgb " ADMITTED " title 'admitted'",
            block, seconds, seconds);
}

static void draw_rule(FILE *out, const struct replay_plot *plot, const struct replay_rule *rule,
                      size_t index)
{
    double seconds = (double)plot->width_ns / 1e9;
    char block[40], label[120];

    snprintf(block, sizeof block, "$rule%zu", index);
    panel_title(out, rule);
    snprintf(label, sizeof label, "%s/s", draws_requests(rule) ? "requests" : rule->unit);
    fputs("set ylabel ", out);
    gnuplot_string(out, label);
    fputc('\n', out);
    if (rule->has_peak)
        fprintf(out,
                "set y2label 'held'\nset y2tics\n"
                "set y2range [0:%" PRIu64 "*1.25]\n",
                rule->limit > rule->peak ? rule->limit : rule->peak > 0 ? rule->peak : 1);
    if (rule->shadow)
        fprintf(out,
                "plot %s using 1:($3/%.9g) with boxes lc rgb " SHADOWED " title 'would be denied'",
                block, seconds);
    else
        bars(out, block, seconds);
    if (rule->has_peak)
        fprintf(out,
                ", \\\n  '' using 1:4 axes x1y2 with steps lw 1.5 lc rgb " LEVEL
                " title 'most held', \\\n"
                "  %" PRIu64 " axes x1y2 with lines dt 2 lw 1.5 lc rgb " LIMIT " title 'limit'",
                rule->limit);
    else if (rule->refill_per_second > 0)
        fprintf(out, ", \\\n  %.9g with lines dt 2 lw 1.5 lc rgb " LIMIT " title 'refill'",
                rule->refill_per_second);
    fputs("\nunset label 50\nunset y2label\nunset y2tics\n", out);
}

/* ---- the page ------------------------------------------------------------------------------- */

struct note {
    char lines[NOTE_LINES][NOTE_COLUMNS + 80];
    unsigned count;
};

/* What has no panel, in lines: nothing is left out without a word. */
static void write_note(struct note *note, const struct replay *replay, const bool *drawn)
{
    size_t left = 0, used = 0;

    for (size_t i = 0; i < replay->rule_count; i++)
        left += !drawn[i];
    for (size_t i = 0; i < replay->rule_count && left > 0; i++) {
        char *line = note->lines[note->count];

        if (drawn[i])
            continue;
        if (note->count + 1 == NOTE_LINES) {
            snprintf(line, sizeof note->lines[0], "and %zu more rules", left);
            note->count++;
            return;
        }
        left--;
        used += (size_t)snprintf(line + used, sizeof note->lines[0] - used, "%s%s (%" PRIu64
                                 " admitted)%s",
                                 note->count == 0 && used == 0 ? "without a panel: " : "",
                                 replay->rules[i].id, replay->rules[i].admitted,
                                 left > 0 ? ", " : "");
        if (used > NOTE_COLUMNS - 40 || left == 0) {
            note->count++;
            used = 0;
        }
    }
}

/* Pixels from the top of a page of this height, as gnuplot counts. */
static double screen(unsigned height, unsigned pixels)
{
    return 1 - (double)pixels / (double)height;
}

#define PAGE_WIDTH   1100u
#define PAGE_HEAD    50u
#define PANEL_HEIGHT 170u
#define PAGE_FOOT    55u
#define LINE_HEIGHT  18u

static void write_page(FILE *out, const struct replay_plot *plot, const struct replay *replay,
                       unsigned height)
{
    char title[600], width[40];
    double seconds = (double)plot->width_ns / 1e9;

    snprintf(width, sizeof width, "%g s", seconds);
    snprintf(title, sizeof title, "%.200s over %.200s: %" PRIu64 " of %zu requests admitted",
             replay->policy.version, replay->trace.name, replay->verdicts[1],
             replay->trace.row_count);
    fprintf(out,
            "set terminal svg size %u,%u noenhanced font 'sans-serif,12' background '#ffffff'\n"
            "set encoding utf8\nset multiplot\n"
            "set format x ''\nset lmargin at screen 0.09\nset rmargin at screen 0.81\n"
            "set style fill solid 1.0 noborder\nset boxwidth %.9g\n"
            "set xrange [0:%.9g]\nset yrange [0:*]\nset grid ytics lc rgb '#dddddd'\n"
            "set border 3\nset tics nomirror out\nset key outside right top vertical\n",
            PAGE_WIDTH, height, seconds / axis_of(plot).per_second,
            seconds / axis_of(plot).per_second * (double)plot->bins);
    fputs("set label 100 ", out);
    gnuplot_string(out, title);
    fprintf(out, " at screen 0.02, screen %.6f left font ',16'\nset label 101 ",
            screen(height, 22));
    snprintf(title, sizeof title, "each bar: %s of the trace", width);
    gnuplot_string(out, title);
    fprintf(out, " at screen 0.98, screen %.6f right font ',12'\n", screen(height, 22));
}

static void place_panel(FILE *out, unsigned height, unsigned panel)
{
    unsigned top = PAGE_HEAD + panel * PANEL_HEIGHT;

    fprintf(out, "set tmargin at screen %.6f\nset bmargin at screen %.6f\n",
            screen(height, top + 28), screen(height, top + PANEL_HEIGHT - 22));
}

static void write_script(FILE *out, const struct replay_plot *plot, const struct replay *replay)
{
    bool *drawn = cli_allocate(replay->rule_count * sizeof *drawn);
    struct note *note = cli_allocate(sizeof *note);
    size_t panels[PANELS_MAX];
    size_t count = choose(replay, panels, drawn);

    write_note(note, replay, drawn);
    unsigned foot = PAGE_HEAD + ((unsigned)count + 1) * PANEL_HEIGHT;
    unsigned height = foot + PAGE_FOOT + note->count * LINE_HEIGHT;
    write_totals(out, plot);
    for (size_t i = 0; i < count; i++)
        write_rule(out, plot, replay, panels[i]);
    write_page(out, plot, replay, height);
    for (unsigned i = 0; i < note->count; i++) {
        fprintf(out, "set label %u ", i + 1);
        gnuplot_string(out, note->lines[i]);
        fprintf(out, " at screen 0.02, screen %.6f left font ',12'\n",
                screen(height, foot + 50 + i * LINE_HEIGHT));
    }
    for (unsigned panel = 0; panel <= count; panel++) {
        place_panel(out, height, panel);
        if (panel == count) {
            fputs("set format x '%g'\nset xlabel ", out);
            gnuplot_string(out, axis_of(plot).name);
            fputc('\n', out);
        }
        if (panel == 0) {
            fputs("set label 50 'all requests' at graph 0, graph 1.13 left font ',13'\n"
                  "set ylabel 'requests/s'\n", out);
            bars(out, "$total", (double)plot->width_ns / 1e9);
            fputs("\nunset label\n", out);
        } else {
            draw_rule(out, plot, &replay->rules[panels[panel - 1]], panels[panel - 1]);
        }
    }
    fputs("unset multiplot\n", out);
    free(note);
    free(drawn);
}

int plot_draw(const struct replay_plot *plot, const struct replay *replay, const char *path)
{
    FILE *script = gnuplot_script();
    /* gnuplot reads a point as a point, whatever the locale of this process writes for it. */
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);

    if (script == NULL || c == (locale_t)0) {
        if (script != NULL)
            fclose(script);
        return CLI_ENVIRONMENT;
    }
    locale_t before = uselocale(c);
    write_script(script, plot, replay);
    uselocale(before);
    freelocale(c);
    return gnuplot_run(script, path);
}
