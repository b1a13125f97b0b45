package hooks

// HelperFile is the name of the helper binary in a session's folder of hooks. The
// links next to it lead to it, so that it is called by their names.
const HelperFile = "helper"
