// #embed puts the bytes of a file into the program. So the page needs no step of a build, and no files beside the program, and a change of a
// file compiles this one again. (The package manager's own way, embedInCode, writes arrays in Swift, which take minutes to compile.)

#include "CPage.h"

// Standard since C23; the compiler has it for each version of the language.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char api_js[] = {
#embed "Files/api.js"
};
static const unsigned char completion_js[] = {
#embed "Files/completion.js"
};
static const unsigned char database_js[] = {
#embed "Files/database.js"
};
static const unsigned char dialog_js[] = {
#embed "Files/dialog.js"
};
static const unsigned char dom_js[] = {
#embed "Files/dom.js"
};
static const unsigned char edits_js[] = {
#embed "Files/edits.js"
};
static const unsigned char format_js[] = {
#embed "Files/format.js"
};
static const unsigned char icon_svg[] = {
#embed "Files/icon.svg"
};
static const unsigned char index_html[] = {
#embed "Files/index.html"
};
static const unsigned char json_editor_js[] = {
#embed "Files/json-editor.js"
};
static const unsigned char json_js[] = {
#embed "Files/json.js"
};
static const unsigned char keyboard_js[] = {
#embed "Files/keyboard.js"
};
static const unsigned char list_field_js[] = {
#embed "Files/list-field.js"
};
static const unsigned char main_js[] = {
#embed "Files/main.js"
};
static const unsigned char plan_js[] = {
#embed "Files/plan.js"
};
static const unsigned char results_js[] = {
#embed "Files/results.js"
};
static const unsigned char revisions_js[] = {
#embed "Files/revisions.js"
};
static const unsigned char router_js[] = {
#embed "Files/router.js"
};
static const unsigned char session_js[] = {
#embed "Files/session.js"
};
static const unsigned char style_css[] = {
#embed "Files/style.css"
};
static const unsigned char view_access_js[] = {
#embed "Files/view-access.js"
};
static const unsigned char view_bench_js[] = {
#embed "Files/view-bench.js"
};
static const unsigned char view_databases_js[] = {
#embed "Files/view-databases.js"
};
static const unsigned char view_document_js[] = {
#embed "Files/view-document.js"
};
static const unsigned char view_documents_js[] = {
#embed "Files/view-documents.js"
};
static const unsigned char view_indexes_js[] = {
#embed "Files/view-indexes.js"
};
static const unsigned char view_query_js[] = {
#embed "Files/view-query.js"
};
static const unsigned char view_replications_js[] = {
#embed "Files/view-replications.js"
};
static const unsigned char view_search_js[] = {
#embed "Files/view-search.js"
};
static const unsigned char view_users_js[] = {
#embed "Files/view-users.js"
};
static const unsigned char view_view_js[] = {
#embed "Files/view-view.js"
};

#define FILE_OF(name, bytes) { name, bytes, sizeof bytes }

static const struct page_file files[] = {
  FILE_OF("api.js", api_js),
  FILE_OF("completion.js", completion_js),
  FILE_OF("database.js", database_js),
  FILE_OF("dialog.js", dialog_js),
  FILE_OF("dom.js", dom_js),
  FILE_OF("edits.js", edits_js),
  FILE_OF("format.js", format_js),
  FILE_OF("icon.svg", icon_svg),
  FILE_OF("index.html", index_html),
  FILE_OF("json-editor.js", json_editor_js),
  FILE_OF("json.js", json_js),
  FILE_OF("keyboard.js", keyboard_js),
  FILE_OF("list-field.js", list_field_js),
  FILE_OF("main.js", main_js),
  FILE_OF("plan.js", plan_js),
  FILE_OF("results.js", results_js),
  FILE_OF("revisions.js", revisions_js),
  FILE_OF("router.js", router_js),
  FILE_OF("session.js", session_js),
  FILE_OF("style.css", style_css),
  FILE_OF("view-access.js", view_access_js),
  FILE_OF("view-bench.js", view_bench_js),
  FILE_OF("view-databases.js", view_databases_js),
  FILE_OF("view-document.js", view_document_js),
  FILE_OF("view-documents.js", view_documents_js),
  FILE_OF("view-indexes.js", view_indexes_js),
  FILE_OF("view-query.js", view_query_js),
  FILE_OF("view-replications.js", view_replications_js),
  FILE_OF("view-search.js", view_search_js),
  FILE_OF("view-users.js", view_users_js),
  FILE_OF("view-view.js", view_view_js),
};

const struct page_file *page_file(size_t index) {
  return index < sizeof files / sizeof *files ? &files[index] : NULL;
}
