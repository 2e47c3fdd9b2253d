/* SPDX-License-Identifier: Apache-2.0
 *
 * The host of recordings (internal/replay/host, compiled with -Dmain=replay_host_main) as a program that is instrumented with a real Score-P: it plays
 * within a region of the program's own, and with -DWITH_MPI within a job of MPI.
 */
#include <scorep/SCOREP_User.h>
#ifdef WITH_MPI
#include <mpi.h>
#endif

int replay_host_main(int argc, char **argv);

static int step(int argc, char **argv)
{
  SCOREP_USER_REGION_DEFINE(region)
  SCOREP_USER_REGION_BEGIN(region, "step", SCOREP_USER_REGION_TYPE_COMMON)
  const int status = replay_host_main(argc, argv);
  SCOREP_USER_REGION_END(region)
  return status;
}

int main(int argc, char **argv)
{
#ifdef WITH_MPI
  int status, worst = 0;
  MPI_Init(&argc, &argv);
  MPI_Barrier(MPI_COMM_WORLD);
  status = step(argc, argv);
  MPI_Allreduce(&status, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return worst;
#else
  return step(argc, argv);
#endif
}
