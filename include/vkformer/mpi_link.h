// MpiLink: the processes of mpirun as one group of devices, by the Message Passing Interface.
//
// This is its own library, vkformer_mpi (CMake option VKFORMER_MPI), so that nobody else links
// MPI. Every process opens its device and calls the same functions of vkformer with the same
// inputs; each gets the same results:
//
//   auto link = vkformer::MpiLink::create();
//   auto group = vkformer::DeviceGroup::create_linked(device, *link);
//   auto model = vkformer::Model::load(device, "DIR", {.group = *group});
//
// A process that fails leaves the others waiting: call abort() then, which ends them all.
#pragma once

#include <memory>

#include "vkformer/device_group.h"

namespace vkformer {

class MpiLink : public DeviceLink {
 public:
  // Of all processes that mpirun started (MPI_COMM_WORLD). Calls MPI_Init_thread where the
  // application has not, and then MPI_Finalize at the process's end. An error where MPI does not
  // allow calls from several threads (MPI_THREAD_MULTIPLE).
  static Result<std::shared_ptr<MpiLink>> create();
  // Of the processes of a communicator, whose number in Fortran is MPI_Comm_c2f(communicator). All
  // of them call it.
  static Result<std::shared_ptr<MpiLink>> create_of(int fortran_communicator);

  // Which of the processes on this machine this is, from 0: for choosing its device.
  virtual size_t local() const = 0;
  // Ends all processes; mpirun exits with `code`.
  [[noreturn]] virtual void abort(int code) = 0;
};

}  // namespace vkformer
