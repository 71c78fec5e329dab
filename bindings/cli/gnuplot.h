/* SPDX-License-Identifier: Apache-2.0 */
/* Running gnuplot: commands in a stream, the picture in a file that is there whole or not. */
#ifndef CLI_GNUPLOT_H
#define CLI_GNUPLOT_H

#include <stdio.h>

/* An unnamed file for commands and data; NULL after an error. */
FILE *gnuplot_script(void);

/* Text as a string of gnuplot. What could end the string, or be more than text, becomes '?'. */
void gnuplot_string(FILE *script, const char *text);

/* Closes the script. An exit code; the file at path is replaced only by a whole picture. */
int gnuplot_run(FILE *script, const char *path);

#endif
