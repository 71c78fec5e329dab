/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy in a file, read again on SIGHUP; a file that is not valid leaves the policy in force.
 *
 *      policy_file FILE
 *
 * Each line of standard input is one request: words "key=value" are descriptors, "cost=N" is the
 * cost. The answer is one line. Every admitted request is released at once: this example is about
 * policies, not about leases.
 */
#include <admit/admit.h>
#include <admit/backends.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POLICY_BYTES_MAX ((size_t)1 << 20)
#define LINE_BYTES_MAX 4096

/* ---- the signal ----------------------------------------------------------------------------- */

/* A handler may do next to nothing. It leaves a byte in a pipe; the loop below does the work. */
static int wake_read = -1, wake_write = -1;

static void on_hangup(int number)
{
    int saved = errno;
    ssize_t written = write(wake_write, "h", 1); /* full: a reload is pending already */

    (void)number;
    (void)written;
    errno = saved;
}

static int catch_hangup(void)
{
    struct sigaction action = { .sa_handler = on_hangup, .sa_flags = SA_RESTART };
    int ends[2];

    if (pipe(ends) != 0)
        return -1;
    wake_read = ends[0];
    wake_write = ends[1];
    if (fcntl(wake_read, F_SETFL, O_NONBLOCK) != 0 || fcntl(wake_write, F_SETFL, O_NONBLOCK) != 0)
        return -1;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGHUP, &action, NULL);
}

/* ---- the file ------------------------------------------------------------------------------- */

static void print_findings(const struct adm_diags *findings)
{
    static const char *const words[] = { "error", "warning", "note" };

    for (uint64_t i = 0; i < adm_diags_count(findings); i++) {
        struct adm_diag finding = { .size = sizeof finding };

        if (adm_diags_get(findings, i, &finding) != ADM_OK)
            continue;
        printf("%s:%u:%u: %s[%s]: %s: %s", finding.file, finding.line, finding.column,
               words[finding.severity < 2 ? finding.severity : 2], finding.code, finding.pointer,
               finding.message);
        if (finding.nearest != NULL)
            printf("; did you mean %s?", finding.nearest);
        putchar('\n');
    }
}

/* NULL after saying why. The library bounds a policy to 1 MiB; one byte more is enough for it to
 * refuse. */
static struct adm_policy *read_policy(const char *path)
{
    static char text[POLICY_BYTES_MAX + 1];
    struct adm_policy_options options = { .size = sizeof options, .file = path };
    struct adm_policy *policy = NULL;
    struct adm_diags *findings = NULL;
    FILE *file = fopen(path, "rb");

    if (file == NULL) {
        printf("%s: %s\n", path, strerror(errno));
        return NULL;
    }
    size_t length = fread(text, 1, sizeof text, file);
    int failed = ferror(file);

    fclose(file);
    if (failed) {
        printf("%s: cannot be read\n", path);
        return NULL;
    }
    adm_status status = adm_policy_load((struct adm_bytes){ text, length }, &options, &policy,
                                        &findings);
    if (status != ADM_OK)
        printf("%s: %s\n", path, adm_status_text(status));
    print_findings(findings);
    adm_diags_free(findings);
    return policy;
}

/* Publishing is all or nothing: whatever goes wrong here, the gate decides by the policy it had. */
static void reload(struct adm_gate *gate, const char *path)
{
    char version[ADM_MAX_VERSION + 1] = "?";
    struct adm_policy *policy = read_policy(path);
    adm_status status = policy != NULL ? adm_gate_publish(gate, policy) : ADM_E_POLICY_INVALID;

    if (policy != NULL && status != ADM_OK)
        printf("%s: %s\n", path, adm_status_text(status));
    adm_policy_unref(policy); /* the gate took its own reference */
    if (adm_gate_version(gate, version, sizeof version) != ADM_OK)
        return;
    printf("%s version %s\n", status == ADM_OK ? "reloaded:" : "kept:", version);
}

/* ---- requests ------------------------------------------------------------------------------- */

/* Cut line into words; returns 0 when one of them is no pair, or there are too many. */
static int parse(char *line, struct adm_request *request, struct adm_descriptor *descriptors)
{
    char *rest = NULL;

    request->cost = 1;
    request->descriptors = descriptors;
    for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(word, '=');

        if (equals == NULL || request->descriptor_count == ADM_MAX_DESCRIPTORS)
            return 0;
        *equals = 0;
        if (strcmp(word, "cost") == 0) {
            request->cost = strtoull(equals + 1, NULL, 10);
            continue;
        }
        descriptors[request->descriptor_count++] =
            (struct adm_descriptor){ .key = adm_str(word), .value = adm_str(equals + 1) };
    }
    return 1;
}

static void answer(struct adm_gate *gate, char *line)
{
    struct adm_descriptor descriptors[ADM_MAX_DESCRIPTORS];
    struct adm_request request = { .size = sizeof request };
    struct adm_decision decision = { .size = sizeof decision };

    if (!parse(line, &request, descriptors)) {
        puts("expected key=value words");
        return;
    }
    adm_status status = adm_admit(gate, &request, &decision);
    if (status != ADM_OK) {
        printf("no decision: %s\n", adm_status_text(status));
        return;
    }
    printf("%s %s by version %s", decision.verdict == ADM_VERDICT_ALLOW ? "allow" : "deny",
           adm_reason_name(decision.reason), decision.policy_version);
    if (decision.rule_count > 0)
        printf(", rule %s", adm_decision_rule(&decision, 0));
    if (decision.retry_after_ms > 0)
        printf(", retry in %llu ms", (unsigned long long)decision.retry_after_ms);
    putchar('\n');
    adm_release(gate, decision.lease, ADM_RESULT_OK, NULL); /* without a lease: nothing happens */
}

/* Take what standard input has; answer every complete line. Returns 0 at its end. */
static int read_requests(struct adm_gate *gate)
{
    static char buffer[LINE_BYTES_MAX];
    static size_t used;
    ssize_t got = read(STDIN_FILENO, buffer + used, sizeof buffer - used);

    if (got < 0)
        return errno == EINTR || errno == EAGAIN;
    if (got == 0)
        return 0;
    used += (size_t)got;
    char *start = buffer, *end;

    while ((end = memchr(start, '\n', used - (size_t)(start - buffer))) != NULL) {
        *end = 0;
        answer(gate, start);
        start = end + 1;
    }
    used -= (size_t)(start - buffer);
    if (used == sizeof buffer) {
        puts("line too long");
        return 0;
    }
    memmove(buffer, start, used);
    return 1;
}

static void serve(struct adm_gate *gate, const char *path)
{
    struct pollfd waiting[2] = { { .fd = wake_read, .events = POLLIN },
                                 { .fd = STDIN_FILENO, .events = POLLIN } };
    char drained[64];

    for (;;) {
        fflush(stdout);
        if (poll(waiting, 2, -1) < 0) {
            if (errno == EINTR)
                continue;
            return;
        }
        /* First the policy, so that a request sent after the signal is judged by the new one.
         * Several signals before this point are one reload: the file is read after all of them. */
        if (waiting[0].revents != 0) {
            while (read(wake_read, drained, sizeof drained) > 0) {
            }
            reload(gate, path);
        }
        if (waiting[1].revents != 0 && !read_requests(gate))
            return;
    }
}

int main(int argc, char **argv)
{
    struct adm_gate_options options = { .size = sizeof options };
    struct adm_gate *gate = NULL;

    if (argc != 2) {
        fprintf(stderr, "usage: policy_file FILE\n");
        return 2;
    }
    if (catch_hangup() != 0) {
        perror("policy_file");
        return 1;
    }
    options.policy = read_policy(argv[1]);
    if (options.policy == NULL)
        return 1; /* at start there is no old policy to keep: refuse to run */
    adm_status status = adm_memory_open(NULL, &options.backend);
    if (status == ADM_OK)
        status = adm_gate_new(&options, &gate);
    if (status != ADM_OK) {
        printf("no gate: %s\n", adm_status_text(status));
        adm_policy_unref(options.policy);
        return 1;
    }
    printf("ready: version %s\n", adm_policy_version(options.policy));
    adm_policy_unref(options.policy);
    serve(gate, argv[1]);
    adm_gate_free(gate);
    return 0;
}
