/* hopmap_record.c: records the MPI calls of a process, for `hopmap record`.
 *
 * Preloaded, it stands before MPI: it defines MPI_X and PMPI_X of every function that may
 * communicate, since Fortran's bindings call the one or the other, and calls the real PMPI_X.
 * wrappers.h, which hopmap writes from the user's mpi.h, holds these functions and the numbers
 * that both sides share.
 *
 * Every process writes two files into $HOPMAP_RECORD_DIR, or the run is left alone:
 *   RANK.events  a page with `struct header`, then `struct record`s in windows that are mapped one
 *                after the other: what was stored is kept however the process ends
 *   RANK.names   lines of text: names of regions, communicators and their members
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "numbers.h"
#include "events.h"
#include "communicators.h"
#include "requests.h"
#include "collectives.h"
#include "neighbours.h"
#include "one_sided.h"
#include "run.h"
#include "wrappers.h"
