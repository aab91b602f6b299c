// The files of the page for people (docs/http-page.md), inside of the program.

#ifndef TOUCHSTONE_PAGE_H
#define TOUCHSTONE_PAGE_H

#include <stddef.h>

struct page_file {
  const char *name;
  const unsigned char *bytes;
  size_t length;
};

// The file at an index, from 0 on; NULL behind the last one. It lives as long as the process.
const struct page_file *page_file(size_t index);

#endif
