/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The documents of the YAML test suite, a folder beside the project: nothing with an alias, anchor
 * or tag is accepted, and what is accepted says what the suite says. Argument: its folder src.
 */
#include <cjson/cJSON.h>
#include <yaml.h>

#include "policy_support.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Where libyaml 0.2.5 and the suite differ: file and number of the document. The suite refuses all
 * but the last two.
 */
static const char *const pinned[] = {
    "Y79Y/3", "DK95/1",                     /* a tab where the line is indented */
    "CVW2/0", "9JBA/0", "X4QW/0", "SU5Z/0", /* a comment without a blank before it */
    "QB6E/0", "9C9N/0",                     /* lines within quotes or brackets, not indented */
    "G5U8/0", "YJV2/0",                     /* a dash alone within brackets */
    "S98Z/0",                               /* blank lines deeper than the first line of a block */
    "L24T/1",                               /* a line of blanks at the end of a block */
    "652Z/0",                               /* "?" at the start of a name within braces */
};

static const char *suite_path;

/* The marks for what cannot be seen in the suite's files. */
static const struct {
    const char *mark, *text;
} marks[] = {
    { "\xE2\x90\xA3", " " },            /* open box */
    { "\xE2\x80\x94", "" },             /* the line in front of a tab's mark */
    { "\xC2\xBB", "\t" },               /* guillemet */
    { "\xE2\x86\x90", "\r" },           /* arrow to the left */
    { "\xE2\x87\x94", "\xEF\xBB\xBF" }, /* double arrow: byte order mark */
    { "\xE2\x86\xB5", "" },             /* an end of line, which follows */
    { "\xE2\x88\x8E\n", "" },           /* no end of line at the end */
};

static struct text without_marks(const char *marked)
{
    struct text text = { 0 };
    text_add(&text, "%s", "");
    while (*marked != '\0') {
        size_t i = 0;
        while (i < COUNT(marks) && strncmp(marked, marks[i].mark, strlen(marks[i].mark)) != 0)
            i++;
        if (i < COUNT(marks)) {
            text_add(&text, "%s", marks[i].text);
            marked += strlen(marks[i].mark);
        } else {
            text_add(&text, "%c", *marked++);
        }
    }
    return text;
}

/* Whether an event of a tree is an alias, or has an anchor or a tag. */
static bool has_properties(const char *tree)
{
    for (const char *line = tree; *line != '\0'; line = strchr(line, '\n') + 1) {
        const char *at = line + strspn(line, " ");
        if (strncmp(at, "=ALI", 4) == 0)
            return true;
        for (at += strcspn(at, " \n"); *at == ' '; at += strcspn(at, " \n")) {
            at++;
            if (*at == '&' || *at == '<')
                return true;
            if (strchr(":'\"|>", *at) != NULL)
                break;
        }
        if (strchr(line, '\n') == NULL)
            break;
    }
    return false;
}

static const char *member(yaml_document_t *document, const yaml_node_t *map, const char *name)
{
    for (yaml_node_pair_t *pair = map->data.mapping.pairs.start; pair < map->data.mapping.pairs.top;
         pair++)
        if (strcmp((char *)yaml_document_get_node(document, pair->key)->data.scalar.value, name) ==
            0)
            return (char *)yaml_document_get_node(document, pair->value)->data.scalar.value;
    return NULL;
}

/* Whether the text is accepted and differs from what the suite says. */
static bool differs(const char *yaml, const char *tree, const char *json, bool fail,
                    uint32_t *accepted)
{
    static char buffer[1 << 16];
    struct adm_policy_options options = { .size = sizeof options, .flags = ADM_POLICY_YAML };
    struct text text = without_marks(yaml);
    uint64_t length = 0;
    adm_status status = adm_policy_json((struct adm_bytes){ text.bytes, text.length }, &options,
                                        buffer, sizeof buffer - 1, &length, NULL);
    free(text.bytes);
    ck_assert(status == ADM_OK || status == ADM_E_POLICY_INVALID);
    if (status != ADM_OK)
        return false;
    (*accepted)++;
    buffer[length] = '\0';
    ck_assert_msg(tree == NULL || !has_properties(tree), "accepted: %s", yaml);
    if (fail || json == NULL)
        return fail;
    cJSON *ours = cJSON_Parse(buffer), *theirs = cJSON_Parse(json);
    bool same = cJSON_Compare(ours, theirs, 1);
    cJSON_Delete(ours);
    cJSON_Delete(theirs);
    return !same;
}

static uint32_t documents, accepted, different;

static void check_file(const char *name)
{
    char path[4096], id[300];
    size_t length;
    yaml_parser_t parser;
    yaml_document_t document;
    snprintf(path, sizeof path, "%s/%s", suite_path, name);
    char *text = read_file(path, &length);
    ck_assert_ptr_nonnull(text);
    yaml_parser_initialize(&parser);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    ck_assert_msg(yaml_parser_load(&parser, &document), "%s", path);
    yaml_node_t *root = yaml_document_get_root_node(&document);
    for (yaml_node_item_t *item = root->data.sequence.items.start;
         item < root->data.sequence.items.top; item++) {
        const yaml_node_t *map = yaml_document_get_node(&document, *item);
        const char *yaml = member(&document, map, "yaml");
        if (yaml == NULL)
            continue;
        documents++;
        if (!differs(yaml, member(&document, map, "tree"), member(&document, map, "json"),
                     member(&document, map, "fail") != NULL, &accepted))
            continue;
        snprintf(id, sizeof id, "%.4s/%d", name, (int)(item - root->data.sequence.items.start));
        bool known = false;
        for (size_t i = 0; i < COUNT(pinned); i++)
            known = known || strcmp(id, pinned[i]) == 0;
        printf("# %s differs from the suite\n", id);
        fflush(stdout);
        different += known ? 1 : 1000;
    }
    yaml_document_delete(&document);
    yaml_parser_delete(&parser);
    free(text);
}

START_TEST(what_is_accepted_says_what_the_suite_says)
{
    DIR *listing = opendir(suite_path);
    ck_assert_ptr_nonnull(listing);
    for (struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing))
        if (strstr(entry->d_name, ".yaml") != NULL)
            check_file(entry->d_name);
    closedir(listing);
    printf("# %u documents, %u accepted, %u differ\n", documents, accepted, different);
    fflush(stdout);
    ck_assert_uint_ge(documents, 300);
    ck_assert_uint_ge(accepted, 100);
    ck_assert_uint_eq(different, COUNT(pinned));
}
END_TEST

int main(int argc, char **argv)
{
    DIR *listing = argc == 2 ? opendir(argv[1]) : NULL;
    if (listing == NULL) {
        printf("1..0 # SKIP the YAML test suite is not beside the project\n");
        return 0;
    }
    closedir(listing);
    suite_path = argv[1];
    Suite *suite = suite_create("policy-yaml-suite");
    TCase *cases = tcase_create("policy-yaml-suite");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, what_is_accepted_says_what_the_suite_says);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
