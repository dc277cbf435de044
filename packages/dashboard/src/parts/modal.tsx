import { Dialog } from "@base-ui/react/dialog";
import type { ReactNode } from "react";

/** A dialog above the page: Escape and a click beside it close it, and the keyboard stays in it. */
export const Modal = ({
  title,
  isOpen,
  close,
  children,
}: {
  readonly title: string;
  readonly isOpen: boolean;
  readonly close: () => void;
  readonly children: ReactNode;
}) => (
  <Dialog.Root open={isOpen} onOpenChange={(open) => open || close()}>
    <Dialog.Portal>
      <Dialog.Backdrop className="backdrop" />
      <Dialog.Popup className="modal">
        <Dialog.Title>{title}</Dialog.Title>
        {children}
      </Dialog.Popup>
    </Dialog.Portal>
  </Dialog.Root>
);
