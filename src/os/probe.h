/*
 * probe.h - static probes for tracers outside of the process (USDT), where the system has them.
 *
 * A probe is one nop and a note in the binary that says where it is and where its arguments are;
 * bpftrace, perf and systemtap turn the nop into a trap while they trace. It needs the header
 * <sys/sdt.h> at build time; nothing is linked. Without the header a probe is empty.
 *
 *     bpftrace -e 'usdt:./libblitz.so:blitz:park { @[arg0] = count(); }'
 */
#ifndef BZ_OS_PROBE_H
#define BZ_OS_PROBE_H

#if defined(BZ_HAVE_SDT)
#include <sys/sdt.h>
#define BZ_PROBE(name, a, b) DTRACE_PROBE2(blitz, name, a, b)
#else
#define BZ_PROBE(name, a, b) ((void)0)
#endif

#endif
