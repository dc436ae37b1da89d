// Examples of models over the processes of mpirun: mpirun -n 2 reference_mpi MODEL. They are a
// program of their own, because nothing else here links MPI.
#include <vkformer/device_group.h>
#include <vkformer/model.h>
#include <vkformer/mpi_link.h>

#include <cstdio>
#include <string>

namespace {

//! [MpiLink::create_of]
// Joins the processes of a communicator of the application: MPI_Comm_c2f(communicator).
vkformer::Result<std::shared_ptr<vkformer::MpiLink>> join(int fortran_communicator) {
  auto link = vkformer::MpiLink::create_of(fortran_communicator);
  if (!link) return link.error();
  std::printf("process %zu of %zu\n", (*link)->own(), (*link)->members());
  return link;
}
//! [end]

vkformer::Status load(const std::string& directory) {
  //! [MpiLink::create MpiLink::local MpiLink::abort]
  // Loads a model over all processes that mpirun started, each with a device of its machine.
  const auto link = vkformer::MpiLink::create();
  if (!link) return link.error();
  vkformer::DeviceOptions options;
  options.device = std::to_string((*link)->local());
  const auto device = vkformer::Device::create(options);
  if (!device) (*link)->abort(1);  // ends the others as well, which would wait
  const auto group = vkformer::DeviceGroup::create_linked(*device, *link);
  if (!group) (*link)->abort(1);
  vkformer::ModelOptions on_group;
  on_group.group = *group;
  const auto model = vkformer::Model::load(*device, directory, on_group);
  if (!model) (*link)->abort(1);
  //! [end]
  std::printf("%s", vkformer::group_plan_text(model->group_plan()).c_str());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: reference_mpi MODEL [COMMUNICATOR]\n");
    return 2;
  }
  vkformer::Status done = load(argv[1]);
  if (done && argc > 2) {
    const auto link = join(std::stoi(argv[2]));
    if (!link) done = link.error();
  }
  if (!done) std::fprintf(stderr, "reference_mpi: %s\n", done.error().message.c_str());
  return done ? 0 : 1;
}
