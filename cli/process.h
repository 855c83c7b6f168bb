/* What makes the process fit to serve its own host's memory: a client there may need sr5d to write
 * pages out, so sr5d may neither be swapped out, nor wait for such writes itself, nor be killed
 * first when memory is short. */
#pragma once

/* As far as it is allowed; what is not is a debugging message. */
void process_harden(void);
