// needs: nothing.
// Row-wise kernels fold their row groups over x and y, because x alone may end at 65,535 groups.
const uint kRowsPerGridLine = 32768u;

uint row_group_index() { return gl_WorkGroupID.x + gl_WorkGroupID.y * kRowsPerGridLine; }
