/* SPDX-License-Identifier: Apache-2.0
 *
 * ncclplay: makes the calls of NCCL that a program says which `nccl-otf2 export --program` has written, on real GPUs. It needs
 * nothing but NCCL and CUDA. Each process is a rank of the program, as srun, mpirun or torchrun number them:
 *
 *	cc -O2 -o ncclplay ncclplay.c -I$CUDA_HOME/include -L$CUDA_HOME/lib64 -lnccl -lcudart
 *	srun -n 4 --gpus-per-node=4 ./ncclplay program.txt FOLDER
 *
 * In FOLDER, which all of them see and which is empty, they leave the ids of communicators.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda_runtime.h>
#include <nccl.h>

enum { COMMS_MOST = 4096, STREAMS = 4 };

static int own_rank;
static ncclComm_t comms[COMMS_MOST];
static cudaStream_t streams[STREAMS];
static void *input, *output;

static void __attribute__((noreturn)) fail(const char *what, const char *why)
{
  fprintf(stderr, "ncclplay: rank %d: %s: %s\n", own_rank, what, why);
  exit(1);
}

static void nccl(ncclResult_t result, const char *word)
{
  if (result != ncclSuccess) fail(word, ncclGetErrorString(result));
}

static void cuda(cudaError_t error, const char *word)
{
  if (error != cudaSuccess) fail(word, cudaGetErrorString(error));
}

/* The number that a launcher gave this process. */
static int numbered(const char *const *variables, int otherwise)
{
  for (; *variables; variables++)
    if (getenv(*variables)) return atoi(getenv(*variables));
  return otherwise;
}

static char *read_whole(const char *path)
{
  FILE *file = fopen(path, "r");
  const long size = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
  char *text = size < 0 ? NULL : calloc((size_t)size + 1, 1);
  if (!text || fseek(file, 0, SEEK_SET) || fread(text, 1, (size_t)size, file) != (size_t)size) fail(path, "cannot be read");
  fclose(file);
  return text;
}

static void wait_ms(double ms)
{
  const struct timespec t = {(time_t)(ms / 1000), (long)(ms * 1e6) % 1000000000};
  nanosleep(&t, NULL);
}

/* initof:NUMBER:RANK,RANK,…:NAME  the first member makes the id, and renames its file when it is whole */
static void make_communicator(char *word, const char *folder)
{
  char path[4096], whole[4096];
  char *rest = word;
  ncclUniqueId id;
  strsep(&rest, ":");
  const char *number = strsep(&rest, ":");
  char *members = strsep(&rest, ":"), *member;
  int place = -1, count = 0;
  if (!members || atoi(number) < 0 || atoi(number) >= COMMS_MOST) fail(word, "is no communicator");
  while ((member = strsep(&members, ","))) {
    if (atoi(member) == own_rank) place = count;
    count++;
  }
  if (place < 0) return;
  snprintf(path, sizeof path, "%s/%s.new", folder, number);
  snprintf(whole, sizeof whole, "%s/%s.id", folder, number);
  if (place == 0) {
    FILE *file = fopen(path, "wx");
    nccl(ncclGetUniqueId(&id), word);
    if (!file || fwrite(&id, sizeof id, 1, file) != 1 || fclose(file) || rename(path, whole))
      fail(path, "cannot be written: is the folder empty?");
  } else {
    FILE *file;
    while (!(file = fopen(whole, "r"))) wait_ms(10);
    if (fread(&id, sizeof id, 1, file) != 1) fail(whole, "cannot be read");
    fclose(file);
  }
  nccl(ncclCommInitRank(&comms[atoi(number)], count, id, place), word);
}

static ncclDataType_t type_of(const char *name)
{
  static const struct {
    const char *name;
    ncclDataType_t type;
  } types[] = {{"i8", ncclInt8},       {"u8", ncclUint8},   {"i32", ncclInt32},   {"u32", ncclUint32},  {"i64", ncclInt64},
               {"u64", ncclUint64},    {"f16", ncclFloat16}, {"bf16", ncclBfloat16}, {"f32", ncclFloat32}, {"f64", ncclFloat64},
#if NCCL_VERSION_CODE >= 22400
               {"f8e4m3", ncclFloat8e4m3}, {"f8e5m2", ncclFloat8e5m2},
#endif
  };
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(types[i].name, name) == 0) return types[i].type;
  fail(name, "is no type of this NCCL");
}

/* NAME:COUNT:TYPE, or with a root or peer NAME:COUNT:RANK:TYPE */
static void call(char *word, ncclComm_t comm, cudaStream_t stream)
{
  char *part[4] = {"", "", "", ""}, *rest = word;
  int parts = 0;
  while (parts < 4 && rest) part[parts++] = strsep(&rest, ":");
  if (parts < 3 || !comm) fail(word, "is no call of this rank");
  const size_t count = strtoull(part[1], NULL, 10);
  const int rank = atoi(part[2]);
  const ncclDataType_t type = type_of(part[parts - 1]);
  ncclResult_t result = ncclInvalidArgument;
#define IS(name) (strcmp(part[0], name) == 0)
  if (IS("ar")) result = ncclAllReduce(input, output, count, type, ncclSum, comm, stream);
  else if (IS("ag")) result = ncclAllGather(input, output, count, type, comm, stream);
  else if (IS("rs")) result = ncclReduceScatter(input, output, count, type, ncclSum, comm, stream);
  else if (IS("bc")) result = ncclBroadcast(input, output, count, type, rank, comm, stream);
  else if (IS("rd")) result = ncclReduce(input, output, count, type, ncclSum, rank, comm, stream);
  else if (IS("send")) result = ncclSend(input, count, type, rank, comm, stream);
  else if (IS("recv")) result = ncclRecv(output, count, type, rank, comm, stream);
#if NCCL_VERSION_CODE >= 22800
  else if (IS("alltoall")) result = ncclAlltoAll(input, output, count, type, comm, stream);
  else if (IS("gather")) result = ncclGather(input, output, count, type, rank, comm, stream);
  else if (IS("scatter")) result = ncclScatter(input, output, count, type, rank, comm, stream);
#endif
  else fail(part[0], "is no word of this ncclplay with this NCCL");
  nccl(result, part[0]);
}

static void play(char *program, const char *folder)
{
  int comm = 0, stream = 0, own = 1;
  char *at = NULL;
  for (char *word = strtok_r(program, " \n\t", &at); word; word = strtok_r(NULL, " \n\t", &at)) {
    if (strchr(word, '?')) own = atoi(word) == own_rank;
    else if (strcmp(word, "]") == 0) own = 1;
    else if (!own) continue;
    else if (strncmp(word, "initof:", 7) == 0) make_communicator(word, folder);
    else if (strncmp(word, "comm:", 5) == 0) comm = atoi(word + 5) % COMMS_MOST;
    else if (strncmp(word, "stream:", 7) == 0) stream = atoi(word + 7) % STREAMS;
    else if (strncmp(word, "work:", 5) == 0) wait_ms(atof(word + 5));
    else if (strcmp(word, "(") == 0) nccl(ncclGroupStart(), word);
    else if (strcmp(word, ")") == 0) nccl(ncclGroupEnd(), word);
    else if (strcmp(word, "sync") == 0)
      for (int i = 0; i < STREAMS; i++) cuda(cudaStreamSynchronize(streams[i]), word);
    else call(word, comms[comm], streams[stream]);
  }
}

int main(int argc, char **argv)
{
  static const char *const ranks[] = {"SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK", NULL};
  static const char *const locals[] = {"SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "LOCAL_RANK", NULL};
  int devices = 0;
  own_rank = numbered(ranks, -1);
  if (argc != 3 || own_rank < 0) {
    fputs("usage: srun -n RANKS ncclplay PROGRAM FOLDER (or mpirun, torchrun)\n", stderr);
    return 2;
  }
  char *program = read_whole(argv[1]), *body = strchr(program, '\n');
  const char *buffer = strstr(program, " -b ");
  if (*program != '#' || !body || !buffer || buffer > body) fail(argv[1], "is no program of nccl-otf2 export --program");
  const size_t bytes = strtoull(buffer + 4, NULL, 10);
  cuda(cudaGetDeviceCount(&devices), "GPUs");
  cuda(cudaSetDevice(numbered(locals, own_rank) % (devices > 0 ? devices : 1)), "GPU");
  cuda(cudaMalloc(&input, bytes), "buffer");
  cuda(cudaMalloc(&output, bytes), "buffer");
  for (int i = 0; i < STREAMS; i++) cuda(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), "stream");
  play(body, argv[2]);
  for (int i = COMMS_MOST; i-- > 0;)
    if (comms[i]) nccl(ncclCommDestroy(comms[i]), "the end");
  return 0;
}
