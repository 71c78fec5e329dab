/* SPDX-License-Identifier: Apache-2.0 */
/* Text into a buffer that may be too small. */
#include "observe/writer.h"

#include "base/memory.h"
#include "base/utf8.h"

void admi_write_bytes(struct admi_writer *writer, const void *data, uint64_t length)
{
    /* After a piece that did not fit the length is beyond the capacity: nothing fits any more. */
    if (writer->length <= writer->capacity && length <= writer->capacity - writer->length)
        admi_copy(writer->buffer + writer->length, data, length);
    writer->length += length;
}

void admi_write_text(struct admi_writer *writer, const char *text)
{
    struct adm_bytes bytes = adm_str(text);
    admi_write_bytes(writer, bytes.data, bytes.length);
}

void admi_write_number(struct admi_writer *writer, uint64_t number)
{
    char digits[20];
    uint32_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    admi_write_bytes(writer, digits + at, sizeof digits - at);
}

void admi_write_decimal(struct admi_writer *writer, uint64_t number, uint32_t digits)
{
    char fraction[20];
    for (uint32_t i = digits; i > 0; i--) {
        fraction[i - 1] = (char)('0' + number % 10);
        number /= 10;
    }
    while (digits > 1 && fraction[digits - 1] == '0')
        digits--;
    admi_write_number(writer, number);
    admi_write_text(writer, ".");
    admi_write_bytes(writer, fraction, digits);
}

void admi_write_label_value(struct admi_writer *writer, struct adm_bytes value)
{
    const uint8_t *at = value.data;
    for (uint64_t i = 0; i < value.length;) {
        uint32_t bytes = admi_utf8_sequence(at + i, value.length - i);
        if (bytes == 0 || at[i] == 0) {
            admi_write_text(writer, "\xEF\xBF\xBD");
            i++;
            continue;
        }
        if (at[i] == '\n')
            admi_write_text(writer, "\\n");
        else if (at[i] == '\\')
            admi_write_text(writer, "\\\\");
        else if (at[i] == '"')
            admi_write_text(writer, "\\\"");
        else
            admi_write_bytes(writer, at + i, bytes);
        i += bytes;
    }
}
