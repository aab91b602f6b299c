// libedit's calls that take a variable number of arguments, which Swift can't call, and a reader of keys that also
// wakes up for another file descriptor.

#ifndef TOUCHSTONE_LINE_EDITOR_H
#define TOUCHSTONE_LINE_EDITOR_H

#include <histedit.h>

// What happened while a line was read.
typedef enum {
  // The line has ended with a newline.
  LineEditorLine,
  // Standard input has ended.
  LineEditorEnd,
  // A byte came from the other file descriptor that isn't one of those below.
  LineEditorWoken,
} LineEditorOutcome;

// Bytes of the other file descriptor that end no line: the window has another size, and the process continues
// after it was stopped.
#define LINE_EDITOR_RESIZED 'w'
#define LINE_EDITOR_CONTINUED 'c'

typedef struct LineEditor LineEditor;

// Completes the text before the cursor: `text` has `length` bytes, in UTF-8. Calls `line_editor_insert` and
// `line_editor_print`. Returns whether anything was printed.
typedef int (*LineEditorCompletion)(LineEditor *editor, void *context, const char *text, int length);

// An editor of lines on standard input and output. `wake` is the descriptor of a pipe's end to read. NULL if there is
// no memory or the terminal isn't known.
LineEditor *line_editor_create(int wake, LineEditorCompletion complete, void *context);
void line_editor_free(LineEditor *editor);

// Reads a line. `*line` is valid until the next call, and doesn't end with a newline. It has newlines if it came from an
// entry of the history that has some.
LineEditorOutcome line_editor_read(LineEditor *editor, const char *prompt, const char **line);

// Adds an entry to the history that the arrow keys show.
void line_editor_remember(LineEditor *editor, const char *entry);

// For completions: inserts text at the cursor, and prints text below the line.
void line_editor_insert(LineEditor *editor, const char *text);
void line_editor_print(LineEditor *editor, const char *text);
// The terminal's width in characters.
int line_editor_width(LineEditor *editor);

#endif
