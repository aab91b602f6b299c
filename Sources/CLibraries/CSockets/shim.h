#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
