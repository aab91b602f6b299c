#define _GNU_SOURCE
#include "CLineEditor.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

struct LineEditor {
  EditLine *edit;
  History *history;
  const char *prompt;
  char *line;
  int wake;
  int woken;
  LineEditorCompletion complete;
  void *context;
};

static LineEditor *of(EditLine *edit) {
  void *context = NULL;
  el_get(edit, EL_CLIENTDATA, &context);
  return context;
}

static char *prompt(EditLine *edit) { return (char *)of(edit)->prompt; }

static unsigned char complete(EditLine *edit, int key) {
  (void)key;
  LineEditor *editor = of(edit);
  const LineInfo *info = el_line(edit);
  int printed =
      editor->complete(editor, editor->context, info->buffer, (int)(info->cursor - info->buffer));
  return printed ? CC_REDISPLAY : CC_REFRESH;
}

// One byte of standard input. Returns 1, 0 at the end, or -1 for an error and when the other descriptor has a byte.
static int next_byte(LineEditor *editor, unsigned char *byte) {
  struct pollfd files[2] = {{.fd = editor->wake, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
  for (;;) {
    if (poll(files, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return -1;
    }
    char why;
    if (files[0].revents && read(editor->wake, &why, 1) == 1) {
      if (why == LINE_EDITOR_RESIZED) {
        el_resize(editor->edit);
      } else if (why == LINE_EDITOR_CONTINUED) {
        // A shell has set the terminal to its own mode meanwhile.
        el_set(editor->edit, EL_PREP_TERM, 1);
        el_set(editor->edit, EL_REFRESH);
      } else {
        editor->woken = 1;
        errno = EINTR;
        return -1;
      }
    }
    if (files[1].revents) {
      ssize_t count = read(STDIN_FILENO, byte, 1);
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      return (int)count;
    }
  }
}

// One character of standard input, which is UTF-8 whatever the locale says. Bytes that aren't UTF-8 are left out.
static int next_character(EditLine *edit, wchar_t *character) {
  LineEditor *editor = of(edit);
  unsigned char bytes[4];
  for (;;) {
    int result = next_byte(editor, &bytes[0]);
    if (result != 1) return result;
    if (bytes[0] < 0x80) {
      *character = bytes[0];
      return 1;
    }
    int more = bytes[0] >= 0xF0 ? 3 : bytes[0] >= 0xE0 ? 2 : bytes[0] >= 0xC2 ? 1 : 0;
    if (more == 0 || bytes[0] > 0xF4) continue;
    wchar_t value = bytes[0] & (0x3F >> more);
    int index = 1;
    for (; index <= more; index++) {
      result = next_byte(editor, &bytes[index]);
      if (result != 1) return result;
      if ((bytes[index] & 0xC0) != 0x80) break;
      value = value << 6 | (bytes[index] & 0x3F);
    }
    if (index <= more) continue;
    *character = value;
    return 1;
  }
}

LineEditor *line_editor_create(int wake, LineEditorCompletion completion, void *context) {
  // The editor writes characters in the locale's encoding, and the shell's text is UTF-8.
  if (!setlocale(LC_CTYPE, "") || strcmp(nl_langinfo(CODESET), "UTF-8") != 0) setlocale(LC_CTYPE, "C.UTF-8");
  LineEditor *editor = calloc(1, sizeof(LineEditor));
  if (!editor) return NULL;
  editor->wake = wake;
  editor->complete = completion;
  editor->context = context;
  editor->prompt = "";
  editor->edit = el_init("touchstone", stdin, stdout, stderr);
  editor->history = history_init();
  if (!editor->edit || !editor->history) {
    line_editor_free(editor);
    return NULL;
  }
  el_set(editor->edit, EL_CLIENTDATA, editor);
  // Signals are the shell's: a thread of its own waits for them.
  el_set(editor->edit, EL_SIGNAL, 0);
  el_set(editor->edit, EL_PROMPT, prompt);
  el_set(editor->edit, EL_EDITOR, "emacs");
  el_set(editor->edit, EL_GETCFN, next_character);
  HistEvent event;
  history(editor->history, &event, H_SETSIZE, 1000);
  history(editor->history, &event, H_SETUNIQUE, 1);
  el_set(editor->edit, EL_HIST, history, editor->history);
  el_set(editor->edit, EL_ADDFN, "touchstone-complete", "Completes a word", complete);
  el_set(editor->edit, EL_BIND, "^I", "touchstone-complete", NULL);
  el_set(editor->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
  // Home, End, Delete, and words with Control and the arrows, as terminals send them.
  el_set(editor->edit, EL_BIND, "\\e[H", "ed-move-to-beg", NULL);
  el_set(editor->edit, EL_BIND, "\\e[F", "ed-move-to-end", NULL);
  el_set(editor->edit, EL_BIND, "\\e[3~", "ed-delete-next-char", NULL);
  el_set(editor->edit, EL_BIND, "\\e[1;5C", "em-next-word", NULL);
  el_set(editor->edit, EL_BIND, "\\e[1;5D", "ed-prev-word", NULL);
  // The user's own settings.
  el_source(editor->edit, NULL);
  return editor;
}

void line_editor_free(LineEditor *editor) {
  if (!editor) return;
  if (editor->edit) el_end(editor->edit);
  if (editor->history) history_end(editor->history);
  free(editor->line);
  free(editor);
}

LineEditorOutcome line_editor_read(LineEditor *editor, const char *text, const char **line) {
  editor->prompt = text;
  editor->woken = 0;
  el_resize(editor->edit);
  // Before the prompt is shown, so that no key is taken in the terminal's own mode.
  el_set(editor->edit, EL_PREP_TERM, 1);
  int count = 0;
  const char *read = el_gets(editor->edit, &count);
  editor->prompt = "";
  if (editor->woken) {
    // The line that was begun is given up.
    el_reset(editor->edit);
    return LineEditorWoken;
  }
  if (!read || count <= 0) return LineEditorEnd;
  free(editor->line);
  editor->line = strdup(read);
  if (!editor->line) return LineEditorEnd;
  size_t length = strlen(editor->line);
  if (length > 0 && editor->line[length - 1] == '\n') editor->line[length - 1] = 0;
  *line = editor->line;
  return LineEditorLine;
}

void line_editor_remember(LineEditor *editor, const char *entry) {
  HistEvent event;
  history(editor->history, &event, H_ENTER, entry);
}

void line_editor_insert(LineEditor *editor, const char *text) { el_insertstr(editor->edit, text); }

void line_editor_print(LineEditor *editor, const char *text) {
  (void)editor;
  fputs(text, stdout);
  fflush(stdout);
}

int line_editor_width(LineEditor *editor) {
  int width = 0;
  return el_get(editor->edit, EL_GETTC, "co", &width, NULL) == 0 && width > 0 ? width : 80;
}
