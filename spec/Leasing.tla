-------------------------------- MODULE Leasing --------------------------------
(* Units of a window, lent in batches.  What is left in a node's hands when the   *)
(* window turns dies with it, or carries over.  No clocks, no messages: an ask is *)
(* answered at once, and windows turn for all at once.                            *)
EXTENDS Integers
CONSTANTS Nodes, Limit, Batch,
          Cost,    \* of every call
          Carry,   \* what is left is kept in the next window
          Whole,   \* guard off: a batch is lent as a whole or not at all
          Late     \* the call may have gone when the answer comes
VARIABLES left,    \* at the store, of this window
          adm,     \* admitted in this window
          cr       \* units in each node's hands
vars == <<left, adm, cr>>

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b

Init == left = Limit /\ adm = 0 /\ cr = [n \in Nodes |-> 0]

\* A batch, or as much as the call needs beside what is in hand.
Least(n) == Cost - cr[n]
Want(n) == Max(Batch, Least(n))
Lent(n) == Min(Want(n), left)
CanLend(n) == /\ cr[n] < Cost
              /\ Lent(n) >= IF Whole THEN Want(n) ELSE Least(n)

Lease(n) == /\ CanLend(n)
            /\ left' = left - Lent(n)
            /\ cr' = [cr EXCEPT ![n] = @ + Lent(n) - Cost]
            /\ adm' = adm + Cost
LeaseLate(n) == /\ Late /\ CanLend(n)
                /\ left' = left - Lent(n)
                /\ cr' = [cr EXCEPT ![n] = @ + Lent(n)]
                /\ UNCHANGED adm
Serve(n) == /\ cr[n] >= Cost
            /\ cr' = [cr EXCEPT ![n] = @ - Cost]
            /\ adm' = adm + Cost
            /\ UNCHANGED left
Turn == /\ left' = Limit /\ adm' = 0
        /\ cr' = IF Carry THEN cr ELSE [n \in Nodes |-> 0]

Next == Turn \/ \E n \in Nodes : Lease(n) \/ LeaseLate(n) \/ Serve(n)
Spec == Init /\ [][Next]_vars

InHand == IF Late THEN Batch + Cost - 1 ELSE Batch - 1
RECURSIVE Count(_)
Count(S) == IF S = {} THEN 0 ELSE 1 + Count(S \ {CHOOSE n \in S : TRUE})
MostAdmitted == Limit + IF Carry THEN Count(Nodes) * InHand ELSE 0

TypeOK == left \in 0..Limit /\ \A n \in Nodes : cr[n] \in 0..Max(InHand, Cost - 1)
Bound == adm <= MostAdmitted
Tight == adm < MostAdmitted            \* must be violated: the bound is reached
Window == adm <= Limit                 \* must be violated when units carry over

\* Demand is admitted while its window has credit: if the window does not turn, all of it.
Demand == \A n \in Nodes : WF_vars(Lease(n)) /\ WF_vars(Serve(n))
Still == Init /\ [][\E n \in Nodes : Lease(n) \/ Serve(n)]_vars /\ Demand
UsedUp == <>(adm > Limit - Cost)
================================================================================
