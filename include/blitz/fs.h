/*
 * blitz/fs.h - files and directories: all of it.
 *
 *   blitz/file.h        open files: read, write, sync, facts, locks
 *   blitz/dir.h         directories as a place to begin paths at, and the names in them
 *   blitz/path.h        names: facts, directories, links, renames, removals, temporary names
 *   blitz/whole_file.h  whole files: read, write in one step, append, copy
 *   blitz/walk.h        whole trees
 *   blitz/fs_watch.h    changes, as they happen
 *   blitz/fs_future.h   all of these as futures
 *
 * docs/files.md is the guide.
 */
#ifndef BLITZ_FS_H
#define BLITZ_FS_H

#include "blitz/dir.h"
#include "blitz/file.h"
#include "blitz/fs_future.h"
#include "blitz/fs_watch.h"
#include "blitz/path.h"
#include "blitz/walk.h"
#include "blitz/whole_file.h"

#endif
